package generate

import "strings"

const (
	byteOfIPv4 = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4       = byteOfIPv4 + `(\.` + byteOfIPv4 + `){3}`
	label      = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	date       = `(20[0-9]{2}|19[0-9]{2}|0001|9999)-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])`
	hex        = `[0-9a-f]`
	isbn10     = `(0306406152|0321751043|080442957X)`
)

// formatPatterns has, for each format, a regular expression of some of its values. The formats are
// those of supportedVersionedFormats in
// k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go, except for password: any
// string is one.
var formatPatterns = map[string]string{
	"bsonobjectid": hex + `{24}`,
	"uri": `(https?://` + label + `\.example\.com(:[1-9][0-9]{1,3})?(/[a-z0-9]{0,8}){0,2}(/[a-z0-9]*)?(\?[a-z]=[a-z0-9]{0,4})?|` +
		`/[a-z0-9]{0,8}|urn:[a-z]{1,8}:[a-z0-9]{1,8})`,
	"email":    `[a-z0-9]([-+a-z0-9]{0,10}[a-z0-9])?@(` + label + `\.){0,2}example\.(com|org)`,
	"hostname": `(` + label + `\.){0,2}([a-z][a-z0-9]{0,8}\.com|[a-z]{2,8})`,
	"ipv4":     ipv4,
	"ipv6":     `(::|::1|fe80::[1-9a-f][0-9a-f]{0,3}|([1-9a-f][0-9a-f]{0,3}:){7}[0-9a-f])`,
	"cidr": `(10\.[0-9]\.0\.0/(1[6-9]|2[0-4])|192\.168\.[0-9]{1,2}\.0/24|fd00:[1-9a-f]{1,4}::/(48|64)|` +
		ipv4 + `/([12]?[0-9]|3[0-2]))`,
	"mac":        hex + `{2}(:` + hex + `{2}){5}`,
	"uuid":       uuid("4"),
	"uuid3":      uuid("3"),
	"uuid4":      uuid("4"),
	"uuid5":      uuid("5"),
	"isbn":       isbn10,
	"isbn10":     isbn10,
	"isbn13":     `(9780306406157|978-0321751041|9790000000001)`,
	"creditcard": `(4111111111111111|5500000000000004|340000000000009)`,
	"ssn":        `[0-9]{3}-[0-9]{2}-[0-9]{4}`,
	"hexcolor":   `#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})`,
	"rgbcolor":   `rgb\(` + byteOfIPv4 + `(,` + byteOfIPv4 + `){2}\)`,
	"byte":       `([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/]{4})`,
	"date":       date,
	"datetime":   date + `T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{0,5}[1-9])?(Z|[-+]0[1-9]:[0-5]0)`,
	"duration":   `(0s|[1-9][0-9]{0,3}(ms|s|m|h)|[1-9][0-9]?h[1-5]?[0-9]m|[1-9][0-9]? (day|week|hour)s)`,

	"k8sshortname": label,
	"k8slongname":  label + `(\.` + label + `){0,3}`,
}

func uuid(version string) string {
	return hex + `{8}-` + hex + `{4}-` + version + hex + `{3}-[89ab]` + hex + `{3}-` + hex + `{12}`
}

// normalFormat returns the name of a format as the API server looks it up.
func normalFormat(name string) string { return strings.ReplaceAll(name, "-", "") }

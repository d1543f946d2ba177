package generate

import (
	"strings"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

const (
	byteOfIPv4 = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4       = byteOfIPv4 + `(\.` + byteOfIPv4 + `){3}`
	ipv6       = `(::|::1|fe80::[1-9a-f][0-9a-f]{0,3}|([1-9a-f][0-9a-f]{0,3}:){7}[0-9a-f])`
	cidr       = `(10\.[0-9]\.0\.0/(1[6-9]|2[0-4])|192\.168\.[0-9]{1,2}\.0/24|fd00:[1-9a-f]{1,4}::/(48|64)|` + ipv4 + `/([12]?[0-9]|3[0-2]))`
	label      = `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	date       = `(20[0-9]{2}|19[0-9]{2}|0001|9999)-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])`
	hex        = `[0-9a-f]`
)

// formatPattern returns a regular expression for some of what has a format, all that is
// matched by it if there is nothing to finish, and a function that makes the rest right. It
// returns false for formats that the API server ignores or has no rule for. The names are
// those of supportedVersionedFormats in
// k8s.io/apiextensions-apiserver/pkg/apiserver/validation/formats.go, without dashes.
func formatPattern(format string) (pattern string, finish func(string) string, ok bool) {
	switch strings.ReplaceAll(format, "-", "") {
	case "bsonobjectid":
		pattern = hex + `{24}`
	case "uri":
		pattern = `(https?://` + label + `\.example\.com(:[1-9][0-9]{1,3})?(/[a-z0-9]{0,8}){0,2}(/[a-z0-9]*)?(\?[a-z]=[a-z0-9]{0,4})?|/[a-z0-9]{0,8}|urn:[a-z]{1,8}:[a-z0-9]{1,8})`
	case "email":
		pattern = `[a-z0-9]([-+a-z0-9]{0,10}[a-z0-9])?@(` + label + `\.){0,2}example\.(com|org)`
	case "hostname":
		pattern = `(` + label + `\.){0,2}([a-z][a-z0-9]{0,8}\.com|[a-z]{2,8})`
	case "ipv4":
		pattern = ipv4
	case "ipv6":
		pattern = ipv6
	case "cidr":
		pattern = cidr
	case "mac":
		pattern = hex + `{2}(:` + hex + `{2}){5}`
	case "uuid", "uuid4":
		pattern = hex + `{8}-` + hex + `{4}-4` + hex + `{3}-[89ab]` + hex + `{3}-` + hex + `{12}`
	case "uuid3":
		pattern = hex + `{8}-` + hex + `{4}-3` + hex + `{3}-[89ab]` + hex + `{3}-` + hex + `{12}`
	case "uuid5":
		pattern = hex + `{8}-` + hex + `{4}-5` + hex + `{3}-[89ab]` + hex + `{3}-` + hex + `{12}`
	case "isbn", "isbn10":
		pattern, finish = `[0-9]{9}`, finishISBN10
	case "isbn13":
		pattern, finish = `97[89]-?[0-9]{9}`, finishISBN13
	case "creditcard":
		pattern, finish = `(4[0-9]{14}|5[1-5][0-9]{13}|3[47][0-9]{12})`, finishCreditCard
	case "ssn":
		pattern = `[0-9]{3}-[0-9]{2}-[0-9]{4}`
	case "hexcolor":
		pattern = `#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})`
	case "rgbcolor":
		pattern = `rgb\(` + byteOfIPv4 + `(,` + byteOfIPv4 + `){2}\)`
	case "byte":
		pattern = `([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/]{4})`
	case "date":
		pattern = date
	case "datetime":
		pattern = date + `T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{0,5}[1-9])?(Z|[-+]0[1-9]:[0-5]0)`
	case "duration":
		pattern = `(0s|[1-9][0-9]{0,3}(ms|s|m|h)|[1-9][0-9]?h[1-5]?[0-9]m|[1-9][0-9]? (day|week|hour)s)`
	case "k8sshortname":
		pattern = label
	case "k8slongname":
		pattern = label + `(\.` + label + `){0,3}`
	default:
		return "", nil, false
	}
	return pattern, finish, true
}

// hasFormat says whether text has a format that the API server knows; it has if there is
// no such format.
func hasFormat(format, text string) bool {
	if _, _, ok := formatPattern(format); !ok {
		return true
	}
	return strfmt.Default.Validates(format, text)
}

func finishISBN10(digits string) string {
	sum := 0
	for i, d := range digits {
		sum += (i + 1) * int(d-'0')
	}
	return digits + string("0123456789X"[sum%11])
}

func finishISBN13(digits string) string {
	sum, i := 0, 0
	for _, d := range digits {
		if d == '-' {
			continue
		}
		sum += int(d-'0') * (1 + i%2*2)
		i++
	}
	return digits + string(rune('0'+(10-sum%10)%10))
}

func finishCreditCard(digits string) string {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return digits + string(rune('0'+(10-sum%10)%10))
}

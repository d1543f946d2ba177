package conversion

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Rename moves a field with its whole value. The two paths may differ in the name of the
// field, and in the objects that contain it.
func Rename(spoke, hub string) Move {
	return Move{
		spoke:   []string{spoke},
		hub:     []string{hub},
		convert: func(values [][]byte, _ bool) ([][]byte, error) { return values, nil },
	}
}

// Part is a field of the hub that holds a part of a split string.
type Part struct {
	Path    string
	Integer bool // the field is an integer, and not a string
}

// Split splits a string of the spoke at a separator into two fields of the hub, such as hostPort
// into host and port. In the other direction it joins the two fields. The string is split at the
// last separator if the second part is an integer, and otherwise at the first. A null field of the
// spoke becomes two null fields of the hub, and the other way round.
//
// The conversion fails if
//
//   - the string lacks the separator,
//   - an integer part is not an integer, or is written in another form, such as the port
//     080,
//   - only one of the two fields of the hub is absent or null, or
//   - the joined string would be split in another place.
//
// If the separator is a colon and the second part is an integer, an IPv6 address without brackets
// is an error: write [2001:db8::1]:80.
func Split(spoke, separator string, first, second Part) Move {
	s := split{spoke, separator, [2]Part{first, second}}
	m := Move{spoke: []string{spoke}, hub: []string{first.Path, second.Path}}
	if separator == "" {
		m.err = fmt.Errorf("Split %s: the separator is empty", spoke)
	}
	m.convert = func(values [][]byte, toHub bool) ([][]byte, error) {
		if toHub {
			return s.toHub(values[0])
		}
		return s.toSpoke(values)
	}
	return m
}

// split is a string of the spoke that is split into two fields of the hub.
type split struct {
	spoke, separator string
	parts            [2]Part
}

func (s split) toHub(value []byte) ([][]byte, error) {
	if string(value) == "null" {
		return [][]byte{value, value}, nil
	}
	text, isString := rawjson.String(value)
	texts, ok := s.cut(text)
	if isString && ok && s.parts[0].fits(texts[0]) && s.parts[1].fits(texts[1]) {
		return [][]byte{s.parts[0].value(texts[0]), s.parts[1].value(texts[1])}, nil
	}
	detail := fmt.Sprintf("must be %s%s%s", s.parts[0].describe(), s.separator, s.parts[1].describe())
	if s.isAddress(text) {
		detail += ", with brackets around an IPv6 address"
	}
	return nil, field.Invalid(fieldPath(s.spoke), printable(value), detail)
}

func (s split) toSpoke(values [][]byte) ([][]byte, error) {
	if string(values[0]) == "null" && string(values[1]) == "null" {
		return values[:1], nil
	}
	for i, part := range s.parts {
		if values[i] == nil {
			return nil, field.Required(fieldPath(part.Path), "needed with "+s.parts[1-i].Path)
		}
	}
	var texts [2]string
	for i, part := range s.parts {
		var ok bool
		if texts[i], ok = part.text(values[i]); !ok {
			return nil, field.Invalid(fieldPath(part.Path), printable(values[i]), "must be "+part.describe())
		}
	}
	joined := texts[0] + s.separator + texts[1]
	if again, _ := s.cut(joined); again != texts {
		return nil, field.Invalid(fieldPath(s.parts[0].Path), texts[0],
			fmt.Sprintf("the joined value %s would be split at another place", joined))
	}
	return [][]byte{rawjson.Quote(joined)}, nil
}

// cut splits a string, and reports whether it has the separator.
func (s split) cut(text string) (parts [2]string, ok bool) {
	if s.isAddress(text) {
		return parts, false
	}
	if i := strings.LastIndex(text, s.separator); s.parts[1].Integer && i >= 0 {
		return [2]string{text[:i], text[i+len(s.separator):]}, true
	}
	parts[0], parts[1], ok = strings.Cut(text, s.separator)
	return parts, ok
}

// isAddress reports whether a string is an IP address without a port.
func (s split) isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil && s.separator == ":" && s.parts[1].Integer
}

// fits reports whether a part of a string is valid, and is joined to the same string.
func (p Part) fits(s string) bool {
	i, err := strconv.ParseInt(s, 10, 64)
	return !p.Integer || err == nil && strconv.FormatInt(i, 10) == s
}

// value returns a part of a string as a value.
func (p Part) value(s string) []byte {
	if p.Integer {
		return []byte(s)
	}
	return rawjson.Quote(s)
}

// text returns the part of a string for a value, and reports whether the value is valid.
func (p Part) text(value []byte) (string, bool) {
	if p.Integer {
		return string(value), p.fits(string(value))
	}
	return rawjson.String(value)
}

func (p Part) describe() string {
	name := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
	if p.Integer {
		return "<" + name + ", an integer>"
	}
	return "<" + name + ">"
}

// printable returns a value for an error.
func printable(value []byte) any {
	if s, ok := rawjson.String(value); ok {
		return s
	}
	return json.RawMessage(value)
}

// fieldPath returns the path for an error.
func fieldPath(path string) *field.Path {
	names := strings.Split(path, ".")
	return field.NewPath(names[0], names[1:]...)
}

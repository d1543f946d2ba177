package conversion

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Rename moves a field with its whole value. The two paths may differ in the name of the
// field, and in the objects that contain it.
func Rename(spoke, hub string) Move {
	return one(spoke, hub, func(value []byte, _ bool) ([]byte, error) { return value, nil })
}

// one returns a move of one field to another field.
func one(spoke, hub string, convert func(value []byte, toHub bool) ([]byte, error)) Move {
	m := Move{spoke: []string{spoke}, hub: []string{hub}}
	m.convert = func(values [][]byte, toHub bool) ([][]byte, error) {
		value, err := convert(values[0], toHub)
		return [][]byte{value}, err
	}
	return m
}

// Enum translates the values of a string field. The values are pairs of the spoke's value
// and the hub's value. Each value occurs in at most one pair on its side. If the paths of
// spoke and hub differ, the field moves from one path to the other as well.
//
// A value that is in no pair is preserved, and so is a value that is not a string. If a spoke value
// is in no pair, but equals the hub value of a pair, or the other way round, the conversion fails,
// because the value would be translated on the way back.
//
// [AddFields] returns an error if the number of values is zero or odd, or if a value occurs
// twice on the same side.
func Enum(spoke, hub string, values ...string) Move {
	toHub, toSpoke := map[string]string{}, map[string]string{}
	m := one(spoke, hub, func(value []byte, up bool) ([]byte, error) {
		there, back, path := toHub, toSpoke, spoke
		if !up {
			there, back, path = toSpoke, toHub, hub
		}
		s, ok := rawjson.String(value)
		if !ok {
			return value, nil // the schema rejects it
		}
		if translated, ok := there[s]; ok {
			return rawjson.Quote(translated), nil
		}
		if _, taken := back[s]; taken {
			return nil, field.Invalid(fieldPath(path), s,
				"the value has another meaning in the other version")
		}
		return value, nil
	})
	if len(values) == 0 || len(values)%2 == 1 {
		m.errs = append(m.errs, fmt.Errorf("Enum %s: values must be pairs", spoke))
		values = nil
	}
	for pair := range slices.Chunk(values, 2) {
		_, spokeTwice := toHub[pair[0]]
		_, hubTwice := toSpoke[pair[1]]
		if spokeTwice || hubTwice {
			m.errs = append(m.errs, fmt.Errorf(
				"Enum %s: %q or %q is in more than one pair", spoke, pair[0], pair[1]))
		}
		toHub[pair[0]], toSpoke[pair[1]] = pair[1], pair[0]
	}
	return m
}

// Part is a field of the hub that holds a part of a split string. [StringPart] and
// [IntegerPart] return parts.
type Part struct {
	path    string
	integer bool
}

// StringPart returns a part that is a string field of the hub.
func StringPart(path string) Part { return Part{path: path} }

// IntegerPart returns a part that is an integer field of the hub.
func IntegerPart(path string) Part { return Part{path: path, integer: true} }

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
	m := Move{spoke: []string{spoke}, hub: []string{first.path, second.path}}
	if separator == "" {
		m.errs = append(m.errs, fmt.Errorf("Split %s: the separator is empty", spoke))
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
			return nil, field.Required(fieldPath(part.path), "needed with "+s.parts[1-i].path)
		}
	}
	var texts [2]string
	for i, part := range s.parts {
		var ok bool
		if texts[i], ok = part.text(values[i]); !ok {
			return nil, field.Invalid(fieldPath(part.path), printable(values[i]), "must be "+part.describe())
		}
	}
	joined := texts[0] + s.separator + texts[1]
	if again, _ := s.cut(joined); again != texts {
		return nil, field.Invalid(fieldPath(s.parts[0].path), texts[0],
			fmt.Sprintf("the joined value %s would be split at another place", joined))
	}
	return [][]byte{rawjson.Quote(joined)}, nil
}

// cut splits a string, and reports whether it has the separator.
func (s split) cut(text string) (parts [2]string, ok bool) {
	if s.isAddress(text) {
		return parts, false
	}
	if i := strings.LastIndex(text, s.separator); s.parts[1].integer && i >= 0 {
		return [2]string{text[:i], text[i+len(s.separator):]}, true
	}
	parts[0], parts[1], ok = strings.Cut(text, s.separator)
	return parts, ok
}

// isAddress reports whether a string is an IP address without a port.
func (s split) isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil && s.separator == ":" && s.parts[1].integer
}

// fits reports whether a part of a string is valid, and is joined to the same string.
func (p Part) fits(s string) bool {
	i, err := strconv.ParseInt(s, 10, 64)
	return !p.integer || err == nil && strconv.FormatInt(i, 10) == s
}

// value returns a part of a string as a value.
func (p Part) value(s string) []byte {
	if p.integer {
		return []byte(s)
	}
	return rawjson.Quote(s)
}

// text returns the part of a string for a value, and reports whether the value is valid.
func (p Part) text(value []byte) (string, bool) {
	if p.integer {
		return string(value), p.fits(string(value))
	}
	return rawjson.String(value)
}

func (p Part) describe() string {
	name := p.path[strings.LastIndexByte(p.path, '.')+1:]
	if p.integer {
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

// Each applies moves to each element of a list of objects. The paths of the moves start at the
// element. If the paths of spoke and hub differ, the list also moves from one to the other. A null
// list, and elements that are not objects, are preserved.
func Each(spoke, hub string, moves ...Move) Move {
	m := one(spoke, hub, func(value []byte, toHub bool) ([]byte, error) {
		if string(value) == "null" {
			return value, nil
		}
		path := spoke
		if !toHub {
			path = hub
		}
		list, i := []byte{'['}, 0
		for element, err := range rawjson.Elements(value) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if element[0] == '{' { // the schema rejects other values
				if element, err = move(element, moves, toHub); err != nil {
					return nil, fmt.Errorf("%s[%d].%w", path, i, err)
				}
			}
			if i++; i > 1 {
				list = append(list, ',')
			}
			list = append(list, element...)
		}
		return append(list, ']'), nil
	})
	m.nested = moves
	return m
}

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

// Rename moves a field, with all that is in it: to another name, into an object, or
// out of one.
func Rename(spoke, hub string) Move {
	return one(spoke, hub, func(value []byte, _ bool) ([]byte, error) { return value, nil })
}

// one makes a move of one value to one place.
func one(spoke, hub string, convert func(value []byte, toHub bool) ([]byte, error)) Move {
	m := Move{spoke: []string{spoke}, hub: []string{hub}}
	m.convert = func(values [][]byte, toHub bool) ([][]byte, error) {
		value, err := convert(values[0], toHub)
		return [][]byte{value}, err
	}
	return m
}

// Enum translates the values of a string field: values are pairs, the spoke's value
// and the hub's. No two pairs may have the same value on a side. A value that is in no pair
// stays as it is; it is an error if the other side would read it as another one.
//
// With two paths the field moves as well.
func Enum(spoke, hub string, values ...string) Move {
	toHub, toSpoke := map[string]string{}, map[string]string{}
	m := one(spoke, hub, func(value []byte, up bool) ([]byte, error) {
		there, back, path := toHub, toSpoke, spoke
		if !up {
			there, back, path = toSpoke, toHub, hub
		}
		s, ok := rawjson.String(value)
		if !ok {
			return value, nil // not for us to judge: the schema does
		}
		if translated, ok := there[s]; ok {
			return rawjson.Quote(translated), nil
		}
		if _, taken := back[s]; taken {
			return nil, field.Invalid(fieldPath(path), s,
				"the other version has this value, with another meaning")
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
				"Enum %s: %q and %q are not the only pair with one of these values", spoke, pair[0], pair[1]))
		}
		toHub[pair[0]], toSpoke[pair[1]] = pair[1], pair[0]
	}
	return m
}

// Part is where a part of a split string goes: see [StringPart] and [IntegerPart].
type Part struct {
	path    string
	integer bool
}

// StringPart is a part that is a string field of the hub.
func StringPart(path string) Part { return Part{path: path} }

// IntegerPart is a part that is an integer field of the hub.
func IntegerPart(path string) Part { return Part{path: path, integer: true} }

// Split splits a string of the spoke at a separator into two fields of the hub, such
// as hostPort into host and port, and joins them again. If the second part is an
// integer, the last separator counts, else the first. A null becomes two, and two become
// one. It is an error if the string cannot be split, if one of the parts alone is absent
// or null, and if what was split would not be joined to the same, or the reverse: as with
// a port that is written 080. A colon does not split an integer off an IPv6 address, unless
// that is in brackets, as in [2001:db8::1]:80.
func Split(spoke, separator string, first, second Part) Move {
	m := Move{spoke: []string{spoke}, hub: []string{first.path, second.path}}
	if separator == "" {
		m.errs = append(m.errs, fmt.Errorf("Split %s: it needs a separator", spoke))
	}
	address := func(s string) bool {
		_, err := netip.ParseAddr(s)
		return err == nil && separator == ":" && second.integer
	}
	cut := func(s string) (a, b string, ok bool) {
		if address(s) {
			return "", "", false
		}
		if i := strings.LastIndex(s, separator); second.integer && i >= 0 {
			return s[:i], s[i+len(separator):], true
		}
		return strings.Cut(s, separator)
	}
	split := func(value []byte) ([][]byte, error) {
		s, isString := rawjson.String(value)
		a, b, ok := cut(s)
		switch {
		case string(value) == "null":
			return [][]byte{value, value}, nil
		case isString && ok && first.fits(a) && second.fits(b):
			return [][]byte{first.value(a), second.value(b)}, nil
		}
		detail := fmt.Sprintf("must be %s%s%s", first.describe(), separator, second.describe())
		if address(s) {
			detail += ", and not an IPv6 address alone"
		}
		return nil, field.Invalid(fieldPath(spoke), printable(value), detail)
	}
	join := func(values [][]byte) ([][]byte, error) {
		texts := make([]string, 2)
		if string(values[0]) == "null" && string(values[1]) == "null" {
			return values[:1], nil
		}
		for i, part := range []Part{first, second} {
			if values[i] == nil {
				return nil, field.Required(fieldPath(part.path), "needed with "+m.hub[1-i])
			}
		}
		for i, part := range []Part{first, second} {
			var ok bool
			if texts[i], ok = part.text(values[i]); !ok {
				return nil, field.Invalid(
					fieldPath(part.path), printable(values[i]), "must be "+part.describe())
			}
		}
		joined := texts[0] + separator + texts[1]
		if a, b, _ := cut(joined); a != texts[0] || b != texts[1] {
			return nil, field.Invalid(fieldPath(first.path), texts[0],
				fmt.Sprintf("joined with %s it would not be split there again: %s", second.path, joined))
		}
		return [][]byte{rawjson.Quote(joined)}, nil
	}
	m.convert = func(values [][]byte, toHub bool) ([][]byte, error) {
		if toHub {
			return split(values[0])
		}
		return join(values)
	}
	return m
}

// fits reports whether a part of a string is valid, and comes back the same.
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

// text is the reverse.
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

// Each does moves in each element of a list of objects; with two paths the list moves
// as well. The paths of the moves begin at the element.
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
			if element[0] == '{' { // the schema refuses what is not an object
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

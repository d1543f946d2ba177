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
	return Move{
		spoke: []string{spoke}, hub: []string{hub},
		take: takeOne(spoke, hub, func(value *node, _ bool) (*node, error) { return value, nil }),
	}
}

// takeOne makes a move of one value to one place.
func takeOne(spoke, hub string, change func(value *node, toHub bool) (*node, error)) func(*node, bool) (func(*node) error, error) {
	return func(doc *node, toHub bool) (func(*node) error, error) {
		from, to := spoke, hub
		if !toHub {
			from, to = hub, spoke
		}
		value, err := doc.take(from)
		if err != nil || value == nil {
			return nil, err
		}
		if value, err = change(value, toHub); err != nil || value == nil {
			return nil, err
		}
		return func(doc *node) error { return doc.put(to, value) }, nil
	}
}

// Enum translates the values of a string field: values are pairs, the spoke's value
// and the hub's. No two pairs may have the same value on a side. A value that is in no pair
// stays as it is; it is an error if the other side would read it as another one.
//
// With two paths the field moves as well.
func Enum(spoke, hub string, values ...string) Move {
	m := Move{spoke: []string{spoke}, hub: []string{hub}}
	if len(values) == 0 || len(values)%2 == 1 {
		m.errs = append(m.errs, fmt.Errorf("Enum %s: values must be pairs", spoke))
		values = nil
	}
	toHub, toSpoke := map[string]string{}, map[string]string{}
	for pair := range slices.Chunk(values, 2) {
		_, spokeTwice := toHub[pair[0]]
		_, hubTwice := toSpoke[pair[1]]
		if spokeTwice || hubTwice {
			m.errs = append(m.errs, fmt.Errorf("Enum %s: %q and %q are not the only pair with one of these values", spoke, pair[0], pair[1]))
		}
		toHub[pair[0]], toSpoke[pair[1]] = pair[1], pair[0]
	}
	m.take = takeOne(spoke, hub, func(value *node, up bool) (*node, error) {
		there, back, path := toHub, toSpoke, spoke
		if !up {
			there, back, path = toSpoke, toHub, hub
		}
		s, ok := value.str()
		if !ok {
			return value, nil // not for us to judge: the schema does
		}
		if translated, ok := there[s]; ok {
			return stringNode(translated), nil
		}
		if _, taken := back[s]; taken {
			return nil, field.Invalid(fieldPath(path), s, "the other version has this value, with another meaning")
		}
		return value, nil
	})
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
	m.take = func(doc *node, toHub bool) (func(*node) error, error) {
		if toHub {
			value, err := doc.take(spoke)
			if err != nil || value == nil {
				return nil, err
			}
			s, isString := value.str()
			a, b, ok := cut(s)
			nodeA, okA := first.node(a)
			nodeB, okB := second.node(b)
			switch {
			case value.isNull():
				nodeA, nodeB = value, value
			case !isString || !ok || !okA || !okB:
				detail := fmt.Sprintf("must be %s%s%s", first.describe(), separator, second.describe())
				if address(s) {
					detail += ", and not an IPv6 address alone"
				}
				return nil, field.Invalid(fieldPath(spoke), printable(value), detail)
			}
			return func(doc *node) error {
				if err := doc.put(first.path, nodeA); err != nil {
					return err
				}
				return doc.put(second.path, nodeB)
			}, nil
		}
		nodeA, err := doc.take(first.path)
		if err != nil {
			return nil, err
		}
		nodeB, err := doc.take(second.path)
		if err != nil {
			return nil, err
		}
		switch {
		case nodeA == nil && nodeB == nil:
			return nil, nil
		case nodeA == nil:
			return nil, field.Required(fieldPath(first.path), "needed with "+second.path)
		case nodeB == nil:
			return nil, field.Required(fieldPath(second.path), "needed with "+first.path)
		case nodeA.isNull() && nodeB.isNull():
			return func(doc *node) error { return doc.put(spoke, nodeA) }, nil
		}
		a, okA := first.text(nodeA)
		if !okA {
			return nil, field.Invalid(fieldPath(first.path), printable(nodeA), "must be "+first.describe())
		}
		b, okB := second.text(nodeB)
		if !okB {
			return nil, field.Invalid(fieldPath(second.path), printable(nodeB), "must be "+second.describe())
		}
		joined := a + separator + b
		if backA, backB, _ := cut(joined); backA != a || backB != b {
			return nil, field.Invalid(fieldPath(first.path), a, fmt.Sprintf("joined with %s it would not be split there again: %s", second.path, joined))
		}
		return func(doc *node) error { return doc.put(spoke, stringNode(joined)) }, nil
	}
	return m
}

// node returns a part of a string as a value; ok is false if it is not what it
// should be, or would not come back the same.
func (p Part) node(s string) (*node, bool) {
	if !p.integer {
		return stringNode(s), true
	}
	i, err := strconv.ParseInt(s, 10, 64)
	return &node{text: []byte(s)}, err == nil && strconv.FormatInt(i, 10) == s
}

// text is the reverse.
func (p Part) text(n *node) (string, bool) {
	if !p.integer {
		return n.str()
	}
	_, ok := p.node(string(n.text))
	return string(n.text), ok
}

func (p Part) describe() string {
	name := p.path[strings.LastIndexByte(p.path, '.')+1:]
	if p.integer {
		return "<" + name + ", an integer>"
	}
	return "<" + name + ">"
}

// printable returns a value for an error.
func printable(n *node) any {
	if s, ok := n.str(); ok {
		return s
	}
	return json.RawMessage(n.append(nil))
}

// Each does moves in each element of a list of objects; with two paths the list moves
// as well. The paths of the moves begin at the element.
func Each(spoke, hub string, moves ...Move) Move {
	m := Move{spoke: []string{spoke}, hub: []string{hub}, nested: moves}
	m.take = takeOne(spoke, hub, func(value *node, toHub bool) (*node, error) {
		if value.isNull() {
			return value, nil
		}
		path := spoke
		if !toHub {
			path = hub
		}
		list, i := []byte{'['}, 0
		for element, err := range rawjson.Elements(value.append(nil)) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			doc := &node{text: element}
			if doc.isObject() { // what is none is for the schema to refuse
				if err := doc.move(moves, toHub); err != nil {
					return nil, fmt.Errorf("%s[%d].%w", path, i, err)
				}
			}
			if i++; i > 1 {
				list = append(list, ',')
			}
			list = doc.append(list)
		}
		return &node{text: append(list, ']')}, nil
	})
	return m
}

package conversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// node is a JSON value in which fields are moved. It is text until a field
// in it is needed.
type node struct {
	text    []byte // nil once it has been looked into
	members []member
}

type member struct {
	name string
	*node
}

func parseNode(text []byte) (*node, error) {
	n := &node{text: text}
	return n, n.open()
}

// open looks into an object.
func (n *node) open() error {
	if n.text == nil {
		return nil
	}
	for m, err := range rawjson.Members(n.text) {
		if err != nil {
			return err
		}
		name := string(m.Name)
		if i := n.index(name); i >= 0 { // of duplicates the last counts
			n.members = slices.Delete(n.members, i, i+1)
		}
		n.members = append(n.members, member{name, &node{text: m.Value}})
	}
	n.text = nil
	return nil
}

// append appends the text.
func (n *node) append(b []byte) []byte {
	if n.text != nil {
		return append(b, n.text...)
	}
	b = append(b, '{')
	for i, m := range n.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendQuote(b, m.name)
		b = append(b, ':')
		b = m.node.append(b)
	}
	return append(b, '}')
}

func (n *node) index(name string) int {
	return slices.IndexFunc(n.members, func(m member) bool { return m.name == name })
}

// isObject reports whether a value is an object, without looking into it.
func (n *node) isObject() bool { return n.text == nil || n.text[0] == '{' }

func (n *node) isNull() bool { return string(n.text) == "null" }

// take removes the value at a path and returns it, or nil. Objects
// on the way that have nothing else in them are removed as well.
func (n *node) take(path string) (*node, error) {
	name, rest, deeper := strings.Cut(path, ".")
	if err := n.open(); err != nil {
		return nil, err
	}
	i := n.index(name)
	if i < 0 {
		return nil, nil
	}
	value := n.members[i].node
	if deeper {
		if !value.isObject() {
			return nil, nil
		}
		found, err := value.take(rest)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", name, err)
		}
		if found == nil || len(value.members) > 0 {
			return found, nil
		}
		value = found
	}
	n.members = slices.Delete(n.members, i, i+1)
	return value, nil
}

// has reports whether there is a value at a path.
func (n *node) has(path string) (bool, error) {
	name, rest, deeper := strings.Cut(path, ".")
	if err := n.open(); err != nil {
		return false, err
	}
	i := n.index(name)
	if i < 0 || !deeper {
		return i >= 0, nil
	}
	if value := n.members[i].node; value.isObject() {
		return value.has(rest)
	}
	return false, nil
}

var errThere = errors.New("the destination of a move is already set")

// put sets the value at a path, and creates the objects on the way.
func (n *node) put(path string, value *node) error {
	name, rest, deeper := strings.Cut(path, ".")
	if err := n.open(); err != nil {
		return err
	}
	i := n.index(name)
	if i < 0 {
		n.members = append(n.members, member{name, &node{}})
		i = len(n.members) - 1
		if !deeper {
			n.members[i].node = value
			return nil
		}
	}
	at := n.members[i].node
	if !deeper || !at.isObject() {
		return fmt.Errorf("%s: %w", name, errThere)
	}
	if err := at.put(rest, value); err != nil {
		return fmt.Errorf("%s.%w", name, err)
	}
	return nil
}

// fieldPath returns the path for an error.
func fieldPath(path string) *field.Path {
	names := strings.Split(path, ".")
	return field.NewPath(names[0], names[1:]...)
}

// str returns a string for an error or a comparison; ok is false if n is none.
func (n *node) str() (s string, ok bool) { return rawjson.String(n.text) }

func stringNode(s string) *node { return &node{text: rawjson.Quote(s)} }

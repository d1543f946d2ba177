package lost

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// node is a JSON value. It is read whole, in one pass: to read each level when
// somebody looks into it takes quadratic time where values are deeply nested.
type node struct {
	name   string // of a member
	text   []byte
	kids   []*node // members, each name once, or elements
	parent *node
	names  map[string]*node // of an object with many members
	sum    *digest          // once somebody has asked

	// What has been done to it. All the rest stays as it was read, so that what is
	// done later to a part of a value that has been replaced does no harm.
	edited  bool   // something was done to one of the kids, or to theirs
	removed bool   // from its parent
	instead []byte // is to be written instead of it
}

// read returns the node of a JSON text.
func read(text []byte) (*node, error) {
	r := reader{Cursor: rawjson.NewCursor(text), names: map[string]string{}}
	n := r.value()
	return n, r.End()
}

func readObject(text []byte) (*node, error) {
	n, err := read(text)
	if err == nil && !n.is('{') {
		err = errors.New("not a JSON object")
	}
	return n, err
}

// reader reads the nodes of a text, of which it makes many at once.
type reader struct {
	rawjson.Cursor
	nodes slab[node]
	kids  slab[*node]
	open  []*node           // the kids, so far, of what is being read
	names map[string]string // of members, by their text: most come again and again
}

func (r *reader) name() string {
	text := r.Name()
	name, known := r.names[string(text)]
	if !known {
		name = valid(string(text))
		if len(r.names) < 256 {
			r.names[string(text)] = name
		}
	}
	return name
}

// slab hands out parts of larger and larger pieces of memory.
type slab[T any] struct {
	free []T
	made int
}

func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		s.made = max(n, min(2*s.made, 512))
		s.free = make([]T, s.made)
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

func (r *reader) value() *node {
	n := &r.nodes.take(1)[0]
	start, first := r.Offset(), len(r.open)
	kind := r.Begins()
	switch kind {
	case '{':
		for r.Enter('{'); r.Next(); {
			name := r.name()
			kid := r.value()
			kid.name = name
			r.open = append(r.open, kid)
		}
	case '[':
		for r.Enter('['); r.Next(); {
			r.open = append(r.open, r.value())
		}
	default:
		r.Value()
	}
	n.text = r.Since(start)
	n.kids = r.kids.take(len(r.open) - first)
	copy(n.kids, r.open[first:])
	r.open = r.open[:first]
	for _, kid := range n.kids {
		kid.parent = n
	}
	if kind == '{' {
		n.dropDuplicates()
	}
	return n
}

// dropDuplicates removes the members that come again later: of duplicates the last counts.
func (n *node) dropDuplicates() {
	twice := false
	for i, kid := range n.kids {
		if len(n.kids) > few {
			kid.removed = n.member(kid.name) != kid
		} else {
			kid.removed = slices.ContainsFunc(n.kids[i+1:], func(later *node) bool { return later.name == kid.name })
		}
		twice = twice || kid.removed
	}
	if twice {
		n.kids = slices.DeleteFunc(n.kids, func(kid *node) bool { return kid.removed })
	}
}

// valid returns s with U+FFFD for what is not UTF-8, as decoders read it.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return unquote(rawjson.Quote(s))
}

// unquote decodes a JSON string.
func unquote(text []byte) string {
	s, _ := rawjson.String(text) // false reports no more than a replacement
	return valid(s)
}

// is reports whether there is a value that begins so: an object, a list or a string.
func (n *node) is(first byte) bool { return n != nil && n.text[0] == first }

// few is how many members are looked through faster than a map.
const few = 16

// member returns the member of that name, nil if there is none.
func (n *node) member(name string) *node {
	if len(n.kids) > few && n.names == nil {
		n.names = make(map[string]*node, 2*len(n.kids))
		for _, kid := range n.kids {
			if !kid.removed {
				n.names[kid.name] = kid
			}
		}
	}
	if n.names != nil {
		return n.names[name]
	}
	for _, kid := range n.kids {
		if kid.name == name && !kid.removed {
			return kid
		}
	}
	return nil
}

// adopt makes kid the last one of n.
func (n *node) adopt(kid *node) {
	kid.parent = n
	n.kids = append(n.kids, kid)
	if n.names != nil {
		n.names[kid.name] = kid
	}
}

// height returns how deeply a value is nested.
func (n *node) height() int {
	if !n.is('{') && !n.is('[') {
		return 0
	}
	height := 0
	for _, kid := range n.kids {
		height = max(height, kid.height())
	}
	return 1 + height
}

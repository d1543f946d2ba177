package merge

import (
	"sync"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// maxFollow is the depth to which two texts are read side by side. Below, a text is read by itself,
// because comparing all that is below each level would be quadratic in a very deep object.
const maxFollow = 64

// resync is the number of elements in a row that a list may lack compared with the other side,
// before the elements after them are read again. It shrinks while no equal element is found.
const resync = 8

// reader reads inputs into nodes. It passes over an input once, checks it, and keeps the spans by
// which the kids of any value are found. A text that equals that of a value which has been read
// already becomes the same node, without being read.
type reader struct {
	whole     bool // whether all of an input is read at once
	converted bool // see Patch

	spans []rawjson.Span
	stack []*node // the kids of the values that are being read
	nodes slab[node]
	lists slab[*node]
	ints  slab[int]
	patch patch
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// reset makes the reader as new, with nothing of an input in it, but keeps memory
// for an object of common size.
func (r *reader) reset() {
	const most = 1 << 14 // elements
	r.whole, r.converted = false, false
	r.spans = emptied(r.spans, most)
	r.stack = emptied(r.stack[:cap(r.stack)], most)
	r.nodes.used = emptied(r.nodes.used, most)
	r.lists.used = emptied(r.lists.used, most)
	r.ints.used = emptied(r.ints.used, most)
	const mostText = 1 << 20 // bytes
	r.patch = patch{ops: emptied(r.patch.ops, mostText), path: emptied(r.patch.path[:cap(r.patch.path)], mostText)}
}

// emptied returns a slice without its elements, and with memory for this many at most.
func emptied[E any](s []E, most int) []E {
	if cap(s) > most {
		return nil
	}
	clear(s)
	return s[:0]
}

// borrow returns a reader for one call, which gives it back with release.
func borrow() *reader { return readers.Get().(*reader) }

func (r *reader) release() {
	r.reset()
	readers.Put(r)
}

// read returns the node of a JSON text, all of which is read.
func read(text []byte) (*node, error) {
	r, c := &reader{whole: true}, rawjson.NewCursor(text)
	n := r.value(&c, nil, true, 0)
	return n, c.End()
}

// slab is memory that is handed out in pieces and taken back at once.
type slab[T any] struct{ used []T }

// take returns n zero values.
func (s *slab[T]) take(n int) []T {
	if cap(s.used)-len(s.used) < n {
		s.used = make([]T, 0, max(min(2*cap(s.used), 1<<14), n, 4)) // pieces of the old memory stay valid
	}
	from := len(s.used)
	s.used = s.used[:from+n]
	return s.used[from : from+n : from+n]
}

// object reads a text that must be one JSON object. Like is a node that may have much text in
// common with it, or nil. The text is read side by side with like where the kids of like have been
// read, or with deep, everywhere.
func (r *reader) object(text []byte, like *node, deep bool) (*node, error) {
	c := rawjson.NewCursor(text)
	var n *node
	if c.Begins() == '{' {
		n = r.value(&c, like, deep, 0)
	} else {
		c.Enter('{') // returns an error about the other value
	}
	if err := c.End(); err != nil {
		return nil, err
	}
	return n, nil
}

// value reads the value at the cursor, as object does. It returns the node like if the text is the
// same.
func (r *reader) value(c *rawjson.Cursor, like *node, deep bool, depth int) *node {
	if depth > maxFollow {
		like = nil
	}
	if like != nil && c.Follow(like.text) {
		return like
	}
	n := &r.nodes.take(1)[0]
	n.kind = kindOf(c.Begins())
	beside := like.is(n.kind) && (deep || like.read) && depth < maxFollow
	if n.nests() && (depth == 0 || r.whole || beside) {
		r.follow(c, n, like, deep, depth)
	} else {
		n.span = len(r.spans)
		n.text, r.spans = c.Outline(r.spans)
	}
	return n
}

// follow reads an object or list side by side with another, if there is one, whose kids
// were read in no other text than its own.
func (r *reader) follow(c *rawjson.Cursor, n, other *node, deep bool, depth int) {
	start, base := c.Offset(), len(r.stack)
	likes := r.kids(other)
	s := neighbor{ahead: resync}
	for c.Enter(n.kind); c.Next(n.kind); {
		if n.kind == '{' {
			name := unquote(c.NameText())
			like := s.member(likes, name)
			k := r.value(c, like, deep, depth+1)
			if k != like {
				k.name = name
			}
			r.stack = append(r.stack, k)
			continue
		}
		k := s.follow(c, likes)
		if k == nil {
			k = r.value(c, s.element(likes), deep, depth+1)
		}
		r.stack = append(r.stack, k)
	}
	if c.Err() == nil {
		n.text = c.Since(start)
		r.have(n, base)
	}
}

// neighbor is a place in the kids of the other value.
type neighbor struct {
	next int // the next kid
	late int // a kid that was skipped

	ahead int // how far to look for an element
}

// member returns the member of that name, which is most often the next.
func (s *neighbor) member(likes []*node, name []byte) *node {
	i, ok := s.next, s.next < len(likes) && string(likes[s.next].name) == string(name)
	if !ok {
		i, ok = find(likes, name)
	}
	if !ok {
		return nil
	}
	s.next = i + 1
	return likes[i]
}

// follow passes over an element that the other side has too: its next element, one that was
// skipped, or one a little further on. It returns nil if none of these has the same text.
func (s *neighbor) follow(c *rawjson.Cursor, likes []*node) *node {
	found := func(i int) *node {
		if i >= len(likes) || !c.Follow(likes[i].text) {
			return nil
		}
		s.next, s.late, s.ahead = i+1, i+1, resync
		return likes[i]
	}
	if k := found(s.next); k != nil {
		return k
	}
	if k := found(s.late); k != nil {
		return k
	}
	for i := range s.ahead {
		if k := found(s.next + 1 + i); k != nil {
			return k
		}
	}
	s.ahead /= 2
	return nil
}

// element returns the element of the other side at the place of an element that only this side has.
func (s *neighbor) element(likes []*node) *node {
	s.next++
	if s.next > len(likes) {
		return nil
	}
	return likes[s.next-1]
}

// kids returns the kids of an object or a list, and none of other values.
func (r *reader) kids(n *node) []*node {
	switch {
	case n == nil:
		return nil
	case n.read || !n.nests():
		return n.kids
	}
	base := len(r.stack)
	c := rawjson.NewCursor(n.text)
	span := n.span + 1
	for c.Enter(n.kind); c.Next(n.kind); {
		k := &r.nodes.take(1)[0]
		if n.kind == '{' {
			k.name = unquote(c.NameText())
		}
		if k.kind = kindOf(c.Begins()); k.nests() {
			k.text, k.span = c.Skip(r.spans[span].Size), span
			span += r.spans[span].Count
		} else {
			k.text, r.spans = c.Outline(r.spans) // no spans, because it has no kids
		}
		r.stack = append(r.stack, k)
	}
	r.have(n, base)
	return n.kids
}

// have gives n the kids on the stack.
func (r *reader) have(n *node, base int) {
	n.kids = r.lists.take(len(r.stack) - base)
	copy(n.kids, r.stack[base:])
	r.stack = r.stack[:base]
	n.read = true
	for _, kid := range n.kids {
		kid.parent = n
	}
	if n.kind == '{' {
		n.kids = byName(n.kids)
	}
}

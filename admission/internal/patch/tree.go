package patch

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value. Its text is a slice of an input, and its kids are read
// when somebody asks for them: most values are equal before and after, and two
// texts are compared much faster than two trees. A node that merge made has
// kids and no text.
type node struct {
	kind jsontext.Kind
	read bool // whether kids are there
	lost bool // whether the text has a member that is not among them: a duplicate
	text []byte
	kids []kid // of an object: sorted by name, each name once; of a list: in order

	// What merge notes of a node that it made from one of raw:
	ops   int    // about how many operations lead to it
	order *order // of a list
}

// kid is a member of an object, or an element of a list, which has no name.
type kid struct {
	name []byte // decoded
	*node
	start, end int // in the text that it was read from, with its name
}

// is reports whether n has that kind; a nil n has none.
func (n *node) is(kind jsontext.Kind) bool { return n != nil && n.kind == kind }

// empty reports whether n is absent or null.
func (n *node) empty() bool { return n == nil || n.kind == 'n' }

// equal reports whether two values are there and have the same text.
func (n *node) equal(o *node) bool {
	return n != nil && o != nil && (n == o || bytes.Equal(n.text, o.text))
}

// have gives n its kids.
func (n *node) have(kids []kid) {
	n.kids, n.read = kids, true
	if n.kind == '{' {
		n.kids = byName(kids)
		n.lost = len(n.kids) < len(kids)
	}
}

// byName sorts members. Of duplicates the last one stays, as in the API
// server's decoder.
func byName(members []kid) []kid {
	compare := func(a, b kid) int { return bytes.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(members, compare) {
		slices.SortStableFunc(members, compare)
	}
	last := members[:0]
	for i, m := range members {
		if i+1 == len(members) || !bytes.Equal(m.name, members[i+1].name) {
			last = append(last, m)
		}
	}
	return last
}

// member returns the value of that name in sorted members, nil if there is none.
func member(members []kid, name string) *node {
	i, ok := slices.BinarySearchFunc(members, name, func(k kid, name string) int {
		return bytes.Compare(k.name, []byte(name))
	})
	if !ok {
		return nil
	}
	return members[i].node
}

// first returns the least name at the head of lists of sorted members.
func first(lists ...[]kid) []byte {
	var least []byte
	found := false
	for _, l := range lists {
		if len(l) > 0 && (!found || bytes.Compare(l[0].name, least) < 0) {
			least, found = l[0].name, true
		}
	}
	return least
}

// take takes the member of that name off the head of sorted members; nil if it
// is not there.
func take(members *[]kid, name []byte) *node {
	if m := *members; len(m) > 0 && bytes.Equal(m[0].name, name) {
		*members = m[1:]
		return m[0].node
	}
	return nil
}

// unquote decodes a JSON string; invalid UTF-8 becomes U+FFFD.
func unquote(text []byte) []byte {
	if len(text) < 2 {
		return nil // after an error
	}
	if plain := text[1 : len(text)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return plain
	}
	s, _ := jsontext.AppendUnquote(nil, text) // the error only reports the replacement
	return s
}

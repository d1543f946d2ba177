package merge

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// node is a JSON value. Its text is a slice of an input, and its kids are read only when needed,
// because most values are equal before and after, and two texts are compared much faster than two
// trees. A node that merge made has kids and no text.
type node struct {
	kind   byte   // see kindOf
	read   bool   // whether kids has been set
	name   []byte // decoded, of a member of an object
	text   []byte
	span   int     // of an object or list that has not been read: its place in the reader's spans
	kids   []*node // of an object: sorted by name, each name once; of a list: in order
	parent *node   // the last one that was read, if several share the node
	sum    *digest // see equal.go

	// merge notes these of a node that it made from one of raw:
	ops  int   // roughly the largest number of operations from raw
	from []int // of a list: the index in raw of each element, or none; nil to replace the list whole

	done *done // the edits by changes, or nil
}

// kindOf returns the kind of a value by the first byte of its text: this byte, and
// '0' for all numbers.
func kindOf(first byte) byte {
	if first == '-' || '0' <= first && first <= '9' {
		return '0'
	}
	return first
}

// nests reports whether n is an object or a list.
func (n *node) nests() bool { return n.kind == '{' || n.kind == '[' }

// is reports whether n has that kind; a nil n has none.
func (n *node) is(kind byte) bool { return n != nil && n.kind == kind }

// empty reports whether n is absent or null.
func (n *node) empty() bool { return n == nil || n.kind == 'n' }

// equal reports whether two values exist and have the same text.
func (n *node) equal(o *node) bool {
	return n != nil && o != nil && (n == o || bytes.Equal(n.text, o.text))
}

// byName sorts members. Of duplicates the last one stays, as in the API
// server's decoder.
func byName(members []*node) []*node {
	rising := true
	for i := 1; i < len(members) && rising; i++ {
		rising = bytes.Compare(members[i-1].name, members[i].name) < 0
	}
	if rising {
		return members
	}
	slices.SortStableFunc(members, func(a, b *node) int { return bytes.Compare(a.name, b.name) })
	last := members[:0]
	for i, m := range members {
		if i+1 == len(members) || !bytes.Equal(m.name, members[i+1].name) {
			last = append(last, m)
		}
	}
	return last
}

// member returns the value of that name in sorted members, or nil.
func member(members []*node, name string) *node {
	if i, ok := find(members, name); ok {
		return members[i]
	}
	return nil
}

// find returns the index at which the member of that name is, or would be, in sorted members.
func find[S string | []byte](members []*node, name S) (int, bool) {
	from, to := 0, len(members)
	for from < to {
		i := (from + to) / 2
		if string(members[i].name) < string(name) {
			from = i + 1
		} else {
			to = i
		}
	}
	return from, from < len(members) && string(members[from].name) == string(name)
}

// first returns the least name at the head of lists of sorted members.
func first(lists ...[]*node) []byte {
	var least []byte
	found := false
	for _, l := range lists {
		if len(l) > 0 && (!found || bytes.Compare(l[0].name, least) < 0) {
			least, found = l[0].name, true
		}
	}
	return least
}

// take takes the member of that name off the head of sorted members, or returns nil.
func take(members *[]*node, name []byte) *node {
	if m := *members; len(m) > 0 && bytes.Equal(m[0].name, name) {
		*members = m[1:]
		return m[0]
	}
	return nil
}

// unquote decodes a JSON string; invalid UTF-8 becomes U+FFFD.
func unquote(text []byte) []byte {
	plain := text[1 : len(text)-1]
	for _, c := range plain {
		if c == '\\' || c >= utf8.RuneSelf {
			s, _ := jsontext.AppendUnquote(nil, text) // the error only reports the replacement
			return s
		}
	}
	return plain
}

// done has the edits of a node, whose other fields stay as they were read, so that a later edit of
// a part of a replaced value does no harm.
type done struct {
	removed bool   // from its parent
	instead []byte // written instead of it
}

// touch notes that n, or one of its kids, is edited.
func (n *node) touch() *done {
	for p := n; p != nil && p.done == nil; p = p.parent {
		p.done = &done{}
	}
	return n.done
}

// at returns the member of that name, or nil.
func (n *node) at(name []byte) *node {
	i, ok := find(n.kids, name)
	if !ok || n.kids[i].removed() {
		return nil
	}
	return n.kids[i]
}

func (n *node) removed() bool { return n.done != nil && n.done.removed }

// add adds a member that an object lacks, or a last element of a list.
func (n *node) add(kid *node) {
	kid.parent = n
	n.touch()
	if n.is('[') {
		n.kids = append(n.kids, kid)
	} else if i, removed := find(n.kids, kid.name); removed {
		n.kids[i] = kid
	} else {
		n.kids = slices.Insert(n.kids, i, kid)
	}
}

// remove takes n from its parent.
func (n *node) remove() { n.touch().removed = true }

// replace puts a text in the place of n.
func (n *node) replace(text []byte) { n.touch().instead = text }

// append appends the text of a value, as it is now.
func (n *node) append(b []byte) []byte {
	switch {
	case n.done != nil && n.done.instead != nil:
		return append(b, n.done.instead...)
	case n.text != nil && (n.done == nil || !n.nests()):
		return append(b, n.text...)
	}
	b = append(b, n.kind)
	empty := len(b)
	for _, kid := range n.kids {
		if kid.removed() {
			continue
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		if n.is('{') {
			b = append(rawjson.AppendQuote(b, string(kid.name)), ':')
		}
		b = kid.append(b)
	}
	return append(b, n.kind+2) // } and ] are two above { and [
}

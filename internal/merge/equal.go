package merge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Object is a JSON object that has been read completely.
type Object struct{ root *node }

// Read reads a JSON object, or returns an error if the text is not one.
func Read(text []byte) (Object, error) {
	root, err := read(text)
	if err == nil && !root.is('{') {
		err = errors.New("not a JSON object")
	}
	return Object{root}, err
}

// Equal reports whether two texts are the same JSON value, except for the order of members.
func Equal(a, b []byte) bool {
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && x.same(y)
}

// Within reports whether larger equals the object, apart from additional members and elements.
func (o Object) Within(larger Object) bool { return o.root.within(larger.root) }

// Hash returns a hash of the object, the same in any order of members.
func (o Object) Hash() string { return o.root.hash() }

// Equal reports whether two objects are the same except for the order of members.
func (o Object) Equal(other Object) bool { return o.root.same(other.root) }

// EqualButEmpty reports whether two objects are the same, except that one may have empty objects
// and empty lists, and objects of such, where the other has nothing.
func (o Object) EqualButEmpty(other Object) bool { return o.root.sameButEmpty(other.root) }

// A digest is the hash of a value's form. Two values are the same if their forms are: decoded
// strings, and the texts of numbers. Because the form of an object or list has the digests of the
// objects and lists in it, each value is hashed once, however deeply it is nested.
type digest = [sha256.Size]byte

// appendForm appends the form of n.
func (n *node) appendForm(b []byte) []byte {
	switch n.kind {
	case '{':
		b = append(b, '{')
		for _, kid := range n.kids {
			b = rawjson.AppendQuote(b, string(kid.name))
			b = kid.appendPart(append(b, ':'))
		}
		return b
	case '[':
		b = append(b, '[')
		for _, kid := range n.kids {
			b = append(kid.appendPart(b), ',')
		}
		return b
	case '"':
		return rawjson.AppendQuote(b, string(unquote(n.text)))
	default:
		return append(b, n.text...)
	}
}

// appendPart appends the form of a scalar, and the digest of anything else.
func (n *node) appendPart(b []byte) []byte {
	if !n.nests() {
		return n.appendForm(b)
	}
	if n.sum == nil {
		form := n.appendForm(b)[len(b):]
		n.sum = new(sha256.Sum256(form))
	}
	return append(append(b, '#'), n.sum[:]...)
}

// hash returns the hash by which a change recognizes a value.
func (n *node) hash() string {
	if n.sum == nil {
		n.sum = new(sha256.Sum256(n.appendForm(nil)))
	}
	return base64.RawURLEncoding.EncodeToString(n.sum[:hashSize])
}

// hashSize suffices to tell a value that a user has written from the former one.
const hashSize = 8

// same reports whether two values have the same form.
func (n *node) same(o *node) bool {
	if bytes.Equal(n.text, o.text) {
		return true
	}
	if n.kind != o.kind {
		return false
	}
	if !n.nests() {
		return bytes.Equal(n.appendForm(nil), o.appendForm(nil))
	}
	return slices.EqualFunc(n.kids, o.kids, func(a, b *node) bool { return bytes.Equal(a.name, b.name) && a.same(b) })
}

func (n *node) sameButEmpty(o *node) bool {
	switch {
	case n == nil || o == nil:
		n = cmp.Or(n, o)
		if n.is('[') {
			return len(n.kids) == 0
		}
		return n.is('{') && !slices.ContainsFunc(n.kids, func(kid *node) bool { return !kid.sameButEmpty(nil) })
	case n.is('{') && o.is('{'):
		names := [][]*node{n.kids, o.kids}
		for len(names[0])+len(names[1]) > 0 {
			name := first(names...)
			if !take(&names[0], name).sameButEmpty(take(&names[1], name)) {
				return false
			}
		}
		return true
	case n.is('[') && o.is('['):
		return slices.EqualFunc(n.kids, o.kids, (*node).sameButEmpty)
	default:
		return n.same(o)
	}
}

// within reports whether o equals n, apart from additional members and elements.
func (n *node) within(o *node) bool {
	switch {
	case n.is('{') && o.is('{'):
		return !slices.ContainsFunc(n.kids, func(kid *node) bool {
			other := member(o.kids, string(kid.name))
			return other == nil || !kid.within(other)
		})
	case n.is('[') && o.is('['):
		return len(n.kids) <= len(o.kids) && slices.EqualFunc(n.kids, o.kids[:len(n.kids)], (*node).within)
	default:
		return n.same(o)
	}
}

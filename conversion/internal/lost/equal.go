package lost

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Two values are equal if their forms are: objects in any order of members,
// strings by what they say, numbers by their text. The form of an object or list
// has the digests of the objects and lists in it. So each value is hashed once,
// however deeply it is nested and however often somebody asks.

type digest = [sha256.Size]byte

// appendForm appends the form of n.
func (n *node) appendForm(b []byte) []byte {
	switch n.text[0] {
	case '{':
		members := n.kids
		if !slices.IsSortedFunc(members, byName) {
			members = slices.SortedFunc(slices.Values(members), byName)
		}
		b = append(b, '{')
		for _, kid := range members {
			b = rawjson.AppendQuote(b, kid.name)
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
		return rawjson.AppendQuote(b, unquote(n.text))
	default:
		return append(b, n.text...)
	}
}

func byName(a, b *node) int { return cmp.Compare(a.name, b.name) }

// appendPart appends the form of a scalar, and the digest of anything else.
func (n *node) appendPart(b []byte) []byte {
	if !n.is('{') && !n.is('[') {
		return n.appendForm(b)
	}
	if n.sum == nil {
		form := n.appendForm(b)[len(b):]
		n.sum = new(sha256.Sum256(form))
	}
	return append(append(b, '#'), n.sum[:]...)
}

func (n *node) digest() digest {
	if n.sum == nil {
		n.sum = new(sha256.Sum256(n.appendForm(nil)))
	}
	return *n.sum
}

// hash returns what a change remembers of a value.
func (n *node) hash() string {
	d := n.digest()
	return base64.RawURLEncoding.EncodeToString(d[:hashSize])
}

// hashSize is enough to tell what one user has written from what was there.
const hashSize = 8

func (n *node) equal(o *node) bool {
	return bytes.Equal(n.text, o.text) || n.text[0] == o.text[0] && n.digest() == o.digest()
}

// within reports whether o is n, or n with more members and elements.
func (n *node) within(o *node) bool {
	switch {
	case n.is('{') && o.is('{'):
		for _, kid := range n.kids {
			if other := o.member(kid.name); other == nil || !kid.within(other) {
				return false
			}
		}
		return true
	case n.is('[') && o.is('['):
		for i, kid := range n.kids {
			if i == len(o.kids) || !kid.within(o.kids[i]) {
				return false
			}
		}
		return true
	default:
		return n.equal(o)
	}
}

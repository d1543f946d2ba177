package merge

import (
	"slices"
	"strconv"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// places returns the index in raw, a list of the same length, of each element of before, or nil if
// the indexes are the same. ok is false if they are unknown.
//
// A conversion, unlike a decoder, may sort a list, or count equal elements. A converted element is
// therefore at its own index only if raw's element there agrees with it, and otherwise at the index
// of the element with the same key or an equal text.
func (r *reader) places(raw, before *node, keys *listmapkeys.Tree) (places []int, ok bool) {
	if !r.converted {
		return nil, true
	}
	olds, befores := r.kids(raw), r.kids(before)
	if slices.EqualFunc(olds, befores, r.agree) {
		return nil, true
	}
	places = r.match(olds, befores, keys)
	for j, i := range places {
		if i == none || !r.agree(olds[i], befores[j]) {
			return nil, false
		}
	}
	return places, true
}

// agree reports whether before may have been converted from the known members of raw.
func (r *reader) agree(raw, before *node) bool {
	switch {
	case raw.equal(before):
		return true
	case raw.empty():
		return r.zero(before)
	case before.empty():
		return r.zero(raw)
	case raw.kind != before.kind:
		return false
	case raw.is('{'):
		olds := r.kids(raw)
		return !slices.ContainsFunc(r.kids(before), func(b *node) bool { return !r.agree(member(olds, string(b.name)), b) })
	case raw.is('['):
		return slices.EqualFunc(r.kids(raw), r.kids(before), r.agree)
	case raw.is('"'):
		return string(unquote(raw.text)) == string(unquote(before.text))
	default: // 1 and 1.0 agree, because this only finds the element
		a, errA := strconv.ParseFloat(string(raw.text), 64)
		b, errB := strconv.ParseFloat(string(before.text), 64)
		return errA == nil && errB == nil && a == b
	}
}

// zero reports whether a value is the encoding of a Go zero value.
func (r *reader) zero(n *node) bool {
	switch {
	case n.empty():
		return true
	case n.is('['):
		return len(r.kids(n)) == 0
	case n.is('{'):
		return !slices.ContainsFunc(r.kids(n), func(k *node) bool { return !r.zero(k) })
	default:
		return string(n.text) == `""` || string(n.text) == "0" || string(n.text) == "false"
	}
}

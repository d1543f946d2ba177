package threeway

import (
	"strconv"

	"github.com/crdkit/crdkit/internal/listkeys"
)

// places returns for each element of before its index in raw, a list of the same
// length; nil if they are at the same places. ok is false if that cannot be told.
//
// A decoder keeps the order of a list. A conversion need not: it may sort a list,
// or count equal elements. So what has been converted is looked at: an element is
// at its own index if raw's agrees with it there, else where the list's key or an
// equal text says.
func (r *reader) places(raw, before *node, keys *listkeys.Tree) (places []int, ok bool) {
	if !r.converted {
		return nil, true
	}
	olds, befores := r.kids(raw), r.kids(before)
	agree := true
	for i := range olds {
		agree = agree && r.agree(olds[i], befores[i])
	}
	if agree {
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

// agree reports whether before may be what the known members of raw became.
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
		for _, b := range r.kids(before) {
			if !r.agree(member(olds, string(b.name)), b) {
				return false
			}
		}
		return true
	case raw.is('['):
		olds, befores := r.kids(raw), r.kids(before)
		if len(olds) != len(befores) {
			return false
		}
		for i := range olds {
			if !r.agree(olds[i], befores[i]) {
				return false
			}
		}
		return true
	case raw.is('"'):
		return string(unquote(raw.text)) == string(unquote(before.text))
	default: // 1 and 1.0 agree: this is about which element it is, and nothing else
		a, errA := strconv.ParseFloat(string(raw.text), 64)
		b, errB := strconv.ParseFloat(string(before.text), 64)
		return errA == nil && errB == nil && a == b
	}
}

// zero reports whether a value is what a Go zero value is encoded as.
func (r *reader) zero(n *node) bool {
	switch {
	case n.empty():
		return true
	case n.is('{'), n.is('['):
		for _, k := range r.kids(n) {
			if n.is('[') || !r.zero(k) {
				return false
			}
		}
		return true
	default:
		return string(n.text) == `""` || string(n.text) == "0" || string(n.text) == "false"
	}
}

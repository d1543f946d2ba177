package threeway

import (
	"bytes"

	"github.com/crdkit/crdkit/internal/listkeys"
)

// merge returns raw with the changes that lead from before to after; raw itself
// when there are none. Raw and before may be nil, which is absence. Keys are those of
// the lists in them.
func (r *reader) merge(raw, before, after *node, keys *listkeys.Tree) *node {
	switch {
	case before.equal(after):
		return raw
	case after.is('{') && mergeable(raw, before):
		return r.mergeObject(raw, before, after, keys)
	case after.is('[') && before.is('[') && raw.is('[') && len(r.kids(before)) == len(r.kids(raw)):
		if places, ok := r.places(raw, before, keys); ok {
			return r.mergeList(raw, before, after, places, keys)
		}
	}
	if raw.equal(after) {
		return raw
	}
	return after
}

// mergeable reports whether an object may be merged into raw member by member:
// then raw and before are objects. One of them may be missing: a Go struct is
// encoded also where raw has nothing, and is left out when it is zero also
// where raw has an object.
func mergeable(raw, before *node) bool {
	switch {
	case raw.is('{'):
		return before.is('{') || before.empty()
	case before.is('{'):
		return raw.empty()
	default:
		return false
	}
}

// mergeObject merges what is in before or in after, and keeps what is in
// neither: the members that the Go type does not know.
func (r *reader) mergeObject(raw, before, after *node, keys *listkeys.Tree) *node {
	olds, befores, afters := r.kids(raw), r.kids(before), r.kids(after)
	n := &r.nodes.take(1)[0]
	*n = node{kind: '{', read: true, kids: r.lists.take(len(olds) + len(afters))[:0]}
	if raw != nil {
		n.name = raw.name
	} else {
		n.name = after.name
	}
	for len(olds)+len(befores)+len(afters) > 0 {
		if len(olds) > 0 && len(befores) > 0 && len(afters) > 0 &&
			befores[0] == afters[0] && bytes.Equal(olds[0].name, afters[0].name) {
			n.kids = append(n.kids, olds[0]) // as nearly always
			olds, befores, afters = olds[1:], befores[1:], afters[1:]
			continue
		}
		name := first(olds, befores, afters)
		old, b, a := take(&olds, name), take(&befores, name), take(&afters, name)
		want := old
		if a != nil {
			want = r.merge(old, b, a, keys.Field(name))
		} else if b != nil {
			want = nil
		}
		if want != nil {
			n.kids = append(n.kids, want)
		}
		n.edit(old, want)
	}
	if n.ops == 0 {
		return raw
	}
	return n
}

// mergeList merges each element of after into the element of raw that it was,
// wherever that stood. places are those of before's elements in raw, nil if they
// are the same.
func (r *reader) mergeList(raw, before, after *node, places []int, keys *listkeys.Tree) *node {
	olds, befores, afters := r.kids(raw), r.kids(before), r.kids(after)
	n := &r.nodes.take(1)[0]
	*n = node{kind: '[', read: true, name: raw.name, kids: r.lists.take(len(afters))}
	from := r.match(befores, afters, keys)
	for j, i := range from {
		if i == none {
			n.kids[j] = afters[j]
			continue
		}
		place := i
		if places != nil {
			place = places[i]
			from[j] = place
		}
		old := olds[place]
		if befores[i] == afters[j] { // as nearly always
			n.kids[j] = old
			continue
		}
		n.kids[j] = r.merge(old, befores[i], afters[j], keys)
		n.edit(old, n.kids[j])
	}
	stay := r.ints.take(len(from))[:0]
	for _, i := range from {
		if i != none {
			stay = append(stay, i)
		}
	}
	shifts := len(olds) + len(from) - 2*len(stay)
	n.ops += shifts
	switch {
	case !rises(stay):
		n.ops++ // moves would be no less work
	case n.ops == 0:
		return raw
	case shifts <= maxWork/max(len(olds), len(from)):
		n.from = from
	}
	return n
}

// edit notes what merge made of a kid.
func (n *node) edit(raw, want *node) {
	switch {
	case raw == want:
	case want == nil || want.text != nil:
		n.ops++
	default:
		n.ops += want.ops
	}
}

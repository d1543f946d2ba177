package merge

import (
	"bytes"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// merge returns raw with the changes from before to after, or raw itself if there are none. An
// absent raw or before is nil. Keys are those of the lists in them.
func (r *reader) merge(raw, before, after *node, keys *listmapkeys.Tree) *node {
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

// mergeable reports whether an object may be merged into raw member by member, because raw and
// before are objects or missing: a Go struct may be encoded where raw has nothing, and left out as
// zero where raw has an object.
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

// mergeObject merges the members of before or after, and keeps those in neither, which the Go type
// does not know.
func (r *reader) mergeObject(raw, before, after *node, keys *listmapkeys.Tree) *node {
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
			n.kids = append(n.kids, olds[0]) // the usual case
			olds, befores, afters = olds[1:], befores[1:], afters[1:]
			continue
		}
		name := first(olds, befores, afters)
		old, b, a := take(&olds, name), take(&befores, name), take(&afters, name)
		want := old
		if a != nil {
			want = r.merge(old, b, a, keys.Field(name))
		} else if b != nil {
			want = r.without(old, b, keys.Field(name))
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

// without returns a member of an object without what was in before, or nil if nothing is left. A zero struct
// that is left out may have had members that its Go type does not know.
func (r *reader) without(old, before *node, keys *listmapkeys.Tree) *node {
	if !keys.IsStruct() || !old.is('{') || !before.is('{') {
		return nil
	}
	left := r.merge(old, before, &node{kind: '{', read: true, name: old.name, text: []byte("{}")}, keys)
	if len(r.kids(left)) == 0 {
		return nil
	}
	return left
}

// mergeList merges each element of after into the same element of raw, wherever that is. places are
// the indexes of before's elements in raw, or nil if they are the same.
func (r *reader) mergeList(raw, before, after *node, places []int, keys *listmapkeys.Tree) *node {
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
		if befores[i] == afters[j] { // the usual case
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
		n.ops++ // replace the list, because moving elements would be as much work
	case n.ops == 0:
		return raw
	case shifts <= maxWork/max(len(olds), len(from)):
		n.from = from
	}
	return n
}

// edit notes the result of merge for a kid.
func (n *node) edit(raw, want *node) {
	switch {
	case raw == want:
	case want == nil || want.text != nil:
		n.ops++
	default:
		n.ops += want.ops
	}
}

package patch

// none is the index of an element that has no counterpart.
const none = -1

// merge returns raw with the changes that lead from before to after; raw itself
// when there are none. Raw and before may be nil, which is absence.
func (r *reader) merge(raw, before, after *node) *node {
	switch {
	case before.equal(after):
		return raw
	case after.is('{') && mergeable(raw, before):
		return r.mergeObject(raw, before, after)
	case after.is('[') && before.is('[') && raw.is('[') && len(r.kids(before, nil)) == len(r.kids(raw, before)):
		if places, ok := r.places(raw, before); ok {
			return r.mergeList(raw, before, after, places)
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
func (r *reader) mergeObject(raw, before, after *node) *node {
	befores := r.kids(before, nil)
	olds, afters := r.kids(raw, before), r.kids(after, before)
	n := &node{kind: '{', read: true, kids: make([]kid, 0, len(olds)+1)}
	for len(olds)+len(befores)+len(afters) > 0 {
		name := first(olds, befores, afters)
		old, b, a := take(&olds, name), take(&befores, name), take(&afters, name)
		want := old
		if a != nil {
			want = r.merge(old, b, a)
		} else if b != nil {
			want = nil
		}
		if want != nil {
			n.kids = append(n.kids, kid{name: name, node: want})
		}
		n.ops += cost(old, want)
	}
	if n.ops == 0 {
		return raw
	}
	return n
}

// mergeList merges each element of after into the element of raw that it was,
// wherever that stood. places are those of before's elements in raw.
func (r *reader) mergeList(raw, before, after *node, places []int) *node {
	olds, befores, afters := r.kids(raw, before), r.kids(before, nil), r.kids(after, before)
	n := &node{kind: '[', read: true, kids: make([]kid, len(afters))}
	from := r.match(befores, afters)
	for j, i := range from {
		if i == none {
			n.kids[j].node = afters[j].node
			continue
		}
		old := olds[places[i]].node
		n.kids[j].node = r.merge(old, befores[i].node, afters[j].node)
		n.ops += cost(old, n.kids[j].node)
		from[j] = places[i]
	}
	n.order = newOrder(from, len(olds))
	n.ops += n.order.shifts
	if n.ops == 0 {
		return raw
	}
	return n
}

// cost returns about how many operations lead from raw to what merge made of it.
func cost(raw, want *node) int {
	switch {
	case raw == want:
		return 0
	case want == nil || want.text != nil:
		return 1
	default:
		return want.ops
	}
}

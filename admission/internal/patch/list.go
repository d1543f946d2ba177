package patch

import "slices"

const (
	// opSize is about what an operation takes besides its path and its value.
	opSize = 40

	// maxWork bounds the elements that are added, removed or moved in one list,
	// times its length: the API server copies the list for each of them.
	maxWork = 1 << 24
)

// order is how the elements of a list have come from those of raw.
type order struct {
	from   []int  // the index in raw of each element, or none
	gone   []int  // the indexes in raw of those that are removed, falling
	stay   []int  // the indexes in raw of those that are not, in their new order
	still  []bool // which of them need not move
	shifts int    // how many elements are removed, moved or added
}

func newOrder(from []int, raw int) *order {
	o := &order{from: from, stay: make([]int, 0, len(from))}
	stays := make([]bool, raw)
	for _, i := range from {
		if i != none {
			o.stay = append(o.stay, i)
			stays[i] = true
		}
	}
	for i := raw - 1; i >= 0; i-- {
		if !stays[i] {
			o.gone = append(o.gone, i)
		}
	}
	o.still = rising(o.stay)
	o.shifts = len(o.gone) + len(from) - len(o.stay)
	for _, s := range o.still {
		if !s {
			o.shifts++
		}
	}
	return o
}

// list writes the operations that make the elements of raw those of want: it
// removes from the end, moves what is left into its new order, and then goes
// through the list once more to add and to edit. So every index is right when
// its turn comes.
func (p *patch) list(raw, want *node) {
	if p.whole(raw, want) {
		p.op("replace", want)
		return
	}
	for _, i := range want.order.gone {
		p.at(i, func() { p.op("remove", nil) })
	}
	p.moves(want.order)
	for j, i := range want.order.from {
		var old *node
		if i != none {
			old = raw.kids[i].node
		}
		if old != want.kids[j].node {
			p.at(j, func() { p.diff(old, want.kids[j].node) })
		}
	}
}

// whole reports whether a list is better replaced whole: because that is
// shorter, or because the operations are too much work.
func (p *patch) whole(raw, want *node) bool {
	kept := 0 // the size of what would be written for nothing
	for j, i := range want.order.from {
		if i != none && (want.kids[j].text == nil || want.kids[j].node == raw.kids[i].node) {
			kept += len(raw.kids[i].text)
		}
	}
	return (want.ops-1)*(opSize+len(p.path)) > kept ||
		want.order.shifts > maxWork/max(len(raw.kids), len(want.kids))
}

// moves brings the elements that stay, now in raw's order, into their new one.
func (p *patch) moves(o *order) {
	if !slices.Contains(o.still, false) {
		return
	}
	now := slices.Sorted(slices.Values(o.stay))
	to := 0 // where the next element belongs, among those that are still to move away
	for k, e := range o.stay {
		if o.still[k] {
			to += slices.Index(now[to:], e) + 1
			continue
		}
		at := slices.Index(now, e)
		now = slices.Delete(now, at, at+1)
		if at < to {
			to--
		}
		now = slices.Insert(now, to, e)
		p.move(at, to)
		to++
	}
}

// rising marks the members of a longest rising subsequence of distinct numbers.
func rising(s []int) []bool {
	marks := make([]bool, len(s))
	ends := make([]int, 0, len(s)) // ends[n] is where the subsequence of n+1 with the least end ends
	prev := make([]int, len(s))    // what comes before s[k] in its subsequence
	for k, v := range s {
		n, _ := slices.BinarySearchFunc(ends, v, func(e, v int) int { return s[e] - v })
		prev[k] = none
		if n > 0 {
			prev[k] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, k)
		}
		ends[n] = k
	}
	if len(ends) > 0 {
		for k := ends[len(ends)-1]; k != none; k = prev[k] {
			marks[k] = true
		}
	}
	return marks
}

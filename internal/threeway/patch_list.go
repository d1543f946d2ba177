package threeway

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
	still  []bool // which of them need not move; nil if all
	now    []int  // where not all are still, the indexes of stay in their old order
	shifts int    // how many elements are removed, moved or added
}

func (r *reader) newOrder(from []int, raw int) *order {
	o := &order{from: from, stay: r.ints.take(len(from))[:0]}
	stays := make([]bool, raw)
	for _, i := range from {
		if i != none {
			o.stay = append(o.stay, i)
			stays[i] = true
		}
	}
	if len(o.stay) < raw {
		o.gone = r.ints.take(raw - len(o.stay))[:0]
		for i := raw - 1; i >= 0; i-- {
			if !stays[i] {
				o.gone = append(o.gone, i)
			}
		}
	}
	o.shifts = raw + len(from) - 2*len(o.stay)
	if slices.IsSorted(o.stay) {
		return o
	}
	o.now = r.ints.take(len(o.stay))[:0]
	for i, s := range stays {
		if s {
			o.now = append(o.now, i)
		}
	}
	o.still = r.rising(o.stay)
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
	if p.whole(raw, want) || !p.allow(want.edits) {
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
			old = raw.kids[i]
		}
		if old != want.kids[j] {
			p.at(j, func() { p.diff(old, want.kids[j]) })
		}
	}
}

// whole reports whether a list is better replaced whole: because that is
// shorter, or because the operations are too much work.
func (p *patch) whole(raw, want *node) bool {
	if want.order.shifts > maxWork/max(len(raw.kids), len(want.kids)) {
		return true
	}
	size := (want.ops - 1) * (opSize + len(p.path))
	for j, i := range want.order.from { // until what would be written for nothing is more
		if size <= 0 {
			return false
		}
		if i != none && (want.kids[j].text == nil || want.kids[j] == raw.kids[i]) {
			size -= len(raw.kids[i].text)
		}
	}
	return size > 0
}

// moves brings the elements that stay, now in raw's order, into their new one.
func (p *patch) moves(o *order) {
	if o.still == nil {
		return
	}
	now := o.now
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
func (r *reader) rising(s []int) []bool {
	marks := make([]bool, len(s))
	ends := r.ints.take(len(s))[:0] // ends[n] is where the subsequence of n+1 with the least end ends
	prev := r.ints.take(len(s))     // what comes before s[k] in its subsequence
	for k, v := range s {
		n := len(ends)
		if n > 0 && s[ends[n-1]] > v {
			n, _ = slices.BinarySearchFunc(ends, v, func(e, v int) int { return s[e] - v })
		}
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

package patch

import (
	"cmp"
	"iter"
	"slices"
)

// maxLikeness bounds the pairs of elements that are compared in one gap.
const maxLikeness = 1 << 12

// matcher finds out which element of a list before is which one after.
type matcher struct {
	*reader
	before, after []*node
	said          []string // the list's keys, nil if nobody has said them
	from, to      []int    // after's index to before's, and back, or none
	keys          []key    // what byKey has found out
}

func (r *reader) newMatcher(before, after []*node, said []string) *matcher {
	m := &matcher{reader: r, before: before, after: after, said: said, from: r.ints.take(len(after)), to: r.ints.take(len(before))}
	for i := range m.to {
		m.to[i] = none
	}
	for j := range m.from {
		m.from[j] = none
	}
	return m
}

// match returns for each element of after the index of the element of before
// that it is, or none. No index is there twice.
//
// Elements are the same when their texts are equal. Of the rest, in a list with
// a key, those with an equal key are, and no others: a newcomer must not
// inherit what belonged to somebody else. In a list without a key it is those
// in the same gap between matched neighbours that are more alike than not, and
// then those at the same place of a gap that has not changed its length, if there
// is nothing that tells them apart.
func (r *reader) match(before, after []*node, said []string) []int {
	m := r.newMatcher(before, after, said)
	m.byText()
	if m.open() && !m.byKey() {
		m.byLikeness()
		m.byPlace()
	}
	return m.from
}

func (m *matcher) pair(i, j int) { m.from[j], m.to[i] = i, j }

// try pairs i and j if both are there, free and equal.
func (m *matcher) try(i, j int) bool {
	ok := i >= 0 && j >= 0 && i < len(m.before) && j < len(m.after) &&
		m.to[i] == none && m.from[j] == none && m.before[i].equal(m.after[j])
	if ok {
		m.pair(i, j)
	}
	return ok
}

// open reports whether there are free elements on both sides.
func (m *matcher) open() bool { return slices.Contains(m.from, none) && slices.Contains(m.to, none) }

// byText pairs equal elements: a common beginning and end first, then what is
// there once on both sides, then the equal neighbours of pairs, then what is
// left in order. It is the algorithm of Heckel (1978): linear, and it finds
// what has moved.
func (m *matcher) byText() {
	lo, end := 0, 0
	for m.try(lo, lo) {
		lo++
	}
	for m.try(len(m.before)-1-end, len(m.after)-1-end) {
		end++
	}
	nb, na := len(m.before)-end, len(m.after)-end
	if lo == nb || lo == na {
		return
	}
	if lo+1 == nb && lo+1 == na {
		// One element was edited. Any rule pairs it, if no key is against that; the
		// others need not be read to know.
		if m.alike(m.before[lo], m.after[lo]) {
			m.pair(lo, lo)
		}
		return
	}
	// Of each text: how often it is there before and after, and the first place
	// before that has not been looked at.
	m.texts.reset(nb - lo)
	inBefore, inAfter, first := m.ints.take(nb-lo), m.ints.take(nb-lo), m.ints.take(nb-lo)
	next := m.ints.take(nb) // the next place before with the same text
	of := m.ints.take(na)   // the text of each place after, or none
	for i := nb - 1; i >= lo; i-- {
		text, added := m.texts.add(m.before[i].text)
		if added {
			first[text] = none
		}
		inBefore[text]++
		next[i], first[text] = first[text], i
		m.before[i].mark = text + 1
	}
	for j := lo; j < na; j++ {
		of[j] = m.after[j].mark - 1
		if of[j] == none { // not one of before's nodes
			of[j] = m.texts.find(m.after[j].text)
		}
		if of[j] != none {
			inAfter[of[j]]++
		}
	}
	for _, b := range m.before[lo:nb] {
		b.mark = 0
	}

	for j := lo; j < na; j++ {
		if text := of[j]; text != none && inBefore[text] == 1 && inAfter[text] == 1 {
			m.try(first[text], j)
		}
	}
	for j := lo + 1; j < na; j++ {
		if m.from[j] == none && m.from[j-1] != none {
			m.try(m.from[j-1]+1, j)
		}
	}
	for j := na - 2; j >= lo; j-- {
		if m.from[j] == none && m.from[j+1] != none {
			m.try(m.from[j+1]-1, j)
		}
	}
	for j := lo; j < na; j++ {
		for text := of[j]; text != none && m.from[j] == none && first[text] != none; first[text] = next[first[text]] {
			m.try(first[text], j)
		}
	}
}

// gap is a run of free elements on both sides, between the same neighbours.
type gap struct{ before, beforeEnd, after, afterEnd int }

// gaps yields the gaps that have elements on both sides, in order.
func (m *matcher) gaps() iter.Seq[gap] {
	return func(yield func(gap) bool) {
		for j := 0; j < len(m.after); j++ {
			if m.from[j] != none {
				continue
			}
			g := gap{after: j, afterEnd: j}
			for g.afterEnd < len(m.after) && m.from[g.afterEnd] == none {
				g.afterEnd++
			}
			if j > 0 {
				g.before = m.from[j-1] + 1
			}
			g.beforeEnd = g.before
			for g.beforeEnd < len(m.before) && m.to[g.beforeEnd] == none {
				g.beforeEnd++
			}
			if g.before == g.beforeEnd && g.afterEnd < len(m.after) {
				// The neighbour before has come from elsewhere: go by the one behind.
				g.beforeEnd = m.from[g.afterEnd]
				g.before = g.beforeEnd
				for g.before > 0 && m.to[g.before-1] == none {
					g.before--
				}
			}
			j = g.afterEnd
			if g.before < g.beforeEnd && !yield(g) {
				return
			}
		}
	}
}

// byLikeness pairs the objects of a gap that are more alike than not, the most
// alike first, and then the ones nearest to their old place.
func (m *matcher) byLikeness() {
	type like struct{ i, j, score, shift int }
	for g := range m.gaps() {
		if (g.beforeEnd-g.before)*(g.afterEnd-g.after) > maxLikeness {
			continue
		}
		var likes []like
		for i := g.before; i < g.beforeEnd; i++ {
			for j := g.after; j < g.afterEnd; j++ {
				if score := m.likeness(m.before[i], m.after[j]); score > 0 && !m.apart(i, j) {
					shift := (i - g.before) - (j - g.after)
					likes = append(likes, like{i, j, score, max(shift, -shift)})
				}
			}
		}
		slices.SortStableFunc(likes, func(a, b like) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.shift, b.shift))
		})
		for _, l := range likes {
			if m.to[l.i] == none && m.from[l.j] == none {
				m.pair(l.i, l.j)
			}
		}
	}
}

// likeness is positive if more than half of the members of two objects are equal.
func (m *matcher) likeness(b, a *node) int {
	if !b.is('{') || !a.is('{') {
		return 0
	}
	bs, as := m.kids(b), m.kids(a)
	score := -max(len(bs), len(as))
	if 2*min(len(bs), len(as))+score <= 0 {
		return 0 // whatever they are: and one may be much larger than all the others
	}
	for len(bs) > 0 && len(as) > 0 {
		name := first(bs, as)
		if take(&bs, name).equal(take(&as, name)) {
			score += 2
		}
	}
	return score
}

// byPlace pairs the elements of a gap that is as long after as before, unless a key
// tells them apart.
func (m *matcher) byPlace() {
	for g := range m.gaps() {
		if g.beforeEnd-g.before == g.afterEnd-g.after {
			for i := g.before; i < g.beforeEnd; i++ {
				if j := g.after + i - g.before; !m.apart(i, j) {
					m.pair(i, j)
				}
			}
		}
	}
}

package merge

import (
	"cmp"
	"slices"
)

// crowd is the number of elements beyond which a leaf that all of them share does not count, so
// that the work is linear.
const crowd = 16

// candidate is a pair of elements that share leaves.
type candidate struct {
	i, j   int
	shared int // the number of leaves that they share
	alike  int // shared, less the unshared leaves of the element that has more of them
	own    int // the number of leaves that only they share
}

func (c candidate) compare(d candidate) int {
	return cmp.Or(cmp.Compare(c.alike, d.alike), cmp.Compare(c.own, d.own))
}

// byLeaves pairs the elements that share the most leaves.
func (m *matcher) byLeaves() {
	all := m.candidates()
	for _, c := range all {
		m.before.rivals[c.i] = append(m.before.rivals[c.i], c)
		m.after.rivals[c.j] = append(m.after.rivals[c.j], c)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.compare(a) })
	for len(all) > 0 {
		end := 1
		for end < len(all) && all[end].compare(all[0]) == 0 {
			end++
		}
		m.equallyAlike(all[:end])
		all = all[end:]
	}
}

// equallyAlike pairs the elements of a candidate if neither is in another candidate, and marks the
// others.
func (m *matcher) equallyAlike(all []candidate) {
	all = slices.DeleteFunc(all, func(c candidate) bool {
		return m.before.match[c.i] != none || m.after.match[c.j] != none
	})
	befores, afters := map[int]int{}, map[int]int{}
	for _, c := range all {
		befores[c.i]++
		afters[c.j]++
	}
	for _, c := range all {
		clear := befores[c.i] == 1 && afters[c.j] == 1 && !m.before.unclear[c.i] && !m.after.unclear[c.j]
		if clear && m.same(c) {
			m.pair(c.i, c.j)
		} else {
			m.before.unclear[c.i], m.after.unclear[c.j] = true, true
		}
	}
}

// candidates returns the pairs that share leaves, except those that their keys tell apart.
func (m *matcher) candidates() (all []candidate) {
	m.before.read()
	m.after.read()
	shared, own := make([]int, len(m.before.all)), make([]int, len(m.before.all))
	var alike []int // the elements of the candidates
	for j, leaves := range m.after.leaves {
		for _, l := range leaves {
			befores := m.before.having[l]
			if len(befores) > crowd {
				continue
			}
			for _, i := range befores {
				if shared[i] == 0 {
					alike = append(alike, i)
				}
				shared[i]++
				if len(befores) == 1 && len(m.after.having[l]) == 1 {
					own[i]++
				}
			}
		}
		for _, i := range alike {
			if !m.otherKey(i, j) {
				all = append(all, candidate{i, j, shared[i], 2*shared[i] - max(len(m.before.leaves[i]), len(leaves)), own[i]})
			}
			shared[i], own[i] = 0, 0
		}
		alike = alike[:0]
	}
	return all
}

// same reports whether a pair is one element that was edited, and not a removed one and a new one
// that resembles it. In its place, an element may have one leaf changed, or any number added or any
// number removed. Elsewhere it must also have kept a leaf that no other element has, and then it
// suffices that most of its members stayed.
func (m *matcher) same(c candidate) bool {
	differ, whole, most := compareLeaves(m.before.leaves[c.i], m.after.leaves[c.j])
	alike := differ <= 1 || whole
	return alike && m.inPlace(c.i, c.j) || (alike || most) && m.shareOwn(c.i, c.j) && !m.contested(c)
}

// contested reports whether one of the two shares as many leaves with yet another element, which
// has only changed more.
func (m *matcher) contested(c candidate) bool {
	return slices.ContainsFunc(slices.Concat(m.before.rivals[c.i], m.after.rivals[c.j]), func(d candidate) bool {
		return d != c && d.shared >= c.shared && d.own >= c.own && m.before.match[d.i] == none && m.after.match[d.j] == none
	})
}

// inPlace reports whether an element has the same neighbor as before, or the same index in a list
// of the same length.
func (m *matcher) inPlace(i, j int) bool {
	before, after := m.before.match, m.after.match
	return i == j && len(before) == len(after) || i > 0 && j > 0 && after[j-1] == i-1 ||
		i+1 < len(before) && j+1 < len(after) && after[j+1] == i+1
}

// shareOwn reports whether two elements share a leaf that no other element has.
func (m *matcher) shareOwn(i, j int) bool {
	return slices.ContainsFunc(m.before.leaves[i], func(l leaf) bool {
		return has(m.after.leaves[j], l) && m.before.count(l) == 1 && m.after.count(l) == 1
	})
}

// count returns how many elements have a leaf.
func (s *side) count(l leaf) int {
	if s.counts == nil {
		s.counts = map[leaf]int{}
		for _, n := range s.all {
			for _, l := range s.leavesOf(n) {
				s.counts[l]++
			}
		}
	}
	return s.counts[l]
}

// read collects the leaves of the elements without a counterpart.
func (s *side) read() {
	s.leaves = make([][]leaf, len(s.match))
	s.having = map[leaf][]int{}
	s.unclear = map[int]bool{}
	s.rivals = map[int][]candidate{}
	for i, other := range s.match {
		if other != none {
			continue
		}
		s.leaves[i] = s.leavesOf(s.all[i])
		for _, l := range s.leaves[i] {
			s.having[l] = append(s.having[l], i)
		}
	}
}

// byPlace pairs two elements that are each alone between the same neighbors, unless both have
// strings, which may be of different elements.
func (m *matcher) byPlace() {
	for j, i := range m.after.match {
		if i != none || m.after.unclear[j] {
			continue
		}
		i, next := 0, len(m.before.match)
		if j > 0 {
			i = m.after.match[j-1] + 1
		}
		if j+1 < len(m.after.match) {
			next = m.after.match[j+1]
		}
		if i+1 == next && (j == 0 || i > 0) && m.before.match[i] == none && !m.before.unclear[i] &&
			!m.otherKey(i, j) && !(slices.ContainsFunc(m.before.leaves[i], leaf.isString) && slices.ContainsFunc(m.after.leaves[j], leaf.isString)) {
			m.pair(i, j)
		}
	}
}

// byOrder pairs the remaining elements of lists of which one was converted from the other in the
// same order. Elements that seem to be removed or moved are each paired with the next one that has
// all their leaves, if there is one for all of them; if elements seem to be removed, a shared leaf
// suffices. In lists of one length, the elements that still remain are paired by their index.
func (m *matcher) byOrder() {
	b, a := &m.before, &m.after // only the hashes of before's elements may be known
	gone := slices.Contains(b.match, none)
	if known := !slices.Contains(b.all, nil); known && (gone || !rises(b.match)) && !m.embed((*node).within) && gone {
		var last *node // the element whose leaves were read last
		var leaves []leaf
		m.embed(func(n, o *node) bool {
			if n != last {
				last, leaves = n, m.leavesOf(n)
			}
			return slices.ContainsFunc(m.leavesOf(o), func(l leaf) bool { return has(leaves, l) })
		})
	}
	for i := range b.all {
		if len(b.all) == len(a.all) && b.match[i] == none && a.match[i] == none && !m.otherKey(i, i) {
			m.pair(i, i)
		}
	}
}

// embed pairs each element of before with the next of after for which like is true, if there is one
// for each.
func (m *matcher) embed(like func(before, after *node) bool) bool {
	var to []int
	for j, n := range m.after.all {
		if i := len(to); i < len(m.before.all) && !m.otherKey(i, j) && like(m.before.all[i], n) {
			to = append(to, j)
		}
	}
	if len(to) < len(m.before.all) {
		return false
	}
	for j := range m.after.match {
		m.after.match[j] = none
	}
	for i, j := range to {
		m.pair(i, j)
	}
	return true
}

package threeway

import (
	"cmp"
	"slices"
)

// crowd is the number of elements from which on a leaf that all of them share counts for
// nothing, so that the work is linear.
const crowd = 16

// candidate is a pair of elements that share leaves.
type candidate struct {
	i, j   int
	own    int // how many of the leaves no other element has, each counted twice
	shared int // how many leaves they share, each counted twice, or once if it is only alike
}

func (c candidate) compare(d candidate) int {
	return cmp.Or(cmp.Compare(c.own, d.own), cmp.Compare(c.shared, d.shared))
}

// byLeaves pairs the elements that share the most leaves.
func (m *matcher) byLeaves() {
	all := m.candidates()
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

// equallyAlike pairs the elements of candidates of which neither is in another one, and
// marks the others.
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
		if clear && m.same(c) && m.certain(c) {
			m.pair(c.i, c.j)
		} else {
			m.before.unclear[c.i], m.after.unclear[c.j] = true, true
		}
	}
}

// candidates returns the pairs that share leaves, except those that their keys tell
// apart.
func (m *matcher) candidates() (all []candidate) {
	m.before.read()
	m.after.read()
	own, shared := make([]int, len(m.before.leaves)), make([]int, len(m.before.leaves))
	var alike []int // the elements that own and shared are about
	for j, leaves := range m.after.leaves {
		if leaves == nil {
			continue
		}
		for _, hash := range leaves.hashes() {
			befores := m.before.having[hash]
			if len(befores) > crowd {
				continue
			}
			for _, i := range befores {
				if shared[i] == 0 {
					alike = append(alike, i)
				}
				shared[i]++
				if len(befores) == 1 && len(m.after.having[hash]) == 1 {
					own[i]++
				}
			}
		}
		for _, i := range alike {
			if !m.otherKey(i, j) {
				all = append(all, candidate{i, j, own[i], shared[i]})
			}
			own[i], shared[i] = 0, 0
		}
		alike = alike[:0]
	}
	return all
}

// same reports whether what two elements share outweighs what tells them apart.
func (m *matcher) same(c candidate) bool {
	apart := 2 * m.replaced(c.i, c.j)
	return c.shared > apart || c.shared == apart && c.own > 0 && !m.strict
}

// certain reports whether a pair is more than an element that went and a new one that
// resembles it: it stands where it stood, or has a leaf that no other element has, matched
// ones among them, or has all that the other one has.
func (m *matcher) certain(c candidate) bool {
	if m.inPlace(c.i, c.j) {
		return true
	}
	was, is := m.before.leaves[c.i].hashes(), m.after.leaves[c.j].hashes()
	shared := 0
	for _, hash := range was {
		if _, both := slices.BinarySearch(is, hash); both {
			shared++
			if m.before.count(hash) == 1 && m.after.count(hash) == 1 {
				return true
			}
		}
	}
	return shared == len(was) || shared == len(is)
}

// inPlace reports whether one of the neighbors of an element is the same as before.
func (m *matcher) inPlace(i, j int) bool {
	before, after := m.before.match, m.after.match
	first, last := i == 0 && j == 0, i+1 == len(before) && j+1 == len(after)
	return first || last || i > 0 && j > 0 && after[j-1] == i-1 ||
		i+1 < len(before) && j+1 < len(after) && after[j+1] == i+1
}

// count returns how many elements have a leaf.
func (s *side) count(hash uint64) int {
	if s.counts == nil {
		s.counts = map[uint64]int{}
		for i := range s.match {
			for _, hash := range s.leavesOf(i).hashes() {
				s.counts[hash]++
			}
		}
	}
	return s.counts[hash]
}

// replaced returns at how many paths an element had strings that no other one had, and has
// others now that no other one has, or that no element had.
func (m *matcher) replaced(i, j int) (n int) {
	for was, is := range m.before.leaves[i].replaced(m.after.leaves[j]) {
		had := func(f leaf) bool { return m.before.count(f.alike()) > 0 }
		if m.before.alone(was) && (m.after.alone(is) || !slices.ContainsFunc(is, had)) {
			n++
		}
	}
	return n
}

// alone reports whether one of the leaves is in no other element.
func (s *side) alone(leaves []leaf) bool {
	return slices.ContainsFunc(leaves, func(f leaf) bool { return len(s.having[f.alike()]) == 1 })
}

// read collects the leaves of the elements without a counterpart.
func (s *side) read() {
	s.leaves = make([]*leaves, len(s.match))
	s.having = map[uint64][]int{}
	s.unclear = map[int]bool{}
	for i, other := range s.match {
		if other != none {
			continue
		}
		s.leaves[i] = s.leavesOf(i)
		s.leaves[i].sort()
		for _, hash := range s.leaves[i].hashes() {
			s.having[hash] = append(s.having[hash], i)
		}
	}
}

// byPlace pairs the elements that stand alone between the same neighbors.
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
			!m.otherKey(i, j) && m.replaced(i, j) == 0 &&
			(!m.strict || len(m.before.leaves[i].all) == 0 || len(m.after.leaves[j].all) == 0) {
			m.pair(i, j)
		}
	}
}

// byIndex pairs what is left at the same index, for lists of which one was made of the
// other: where they are equally long, or where after has all that before has.
func (m *matcher) byIndex() {
	b, a := &m.before, &m.after // of before's elements, only the hashes may be known
	for i := range min(len(b.all), len(a.all)) {
		if b.match[i] != none || a.match[i] != none || m.otherKey(i, i) {
			continue
		}
		if len(b.all) == len(a.all) ||
			b.all[i] != nil && !b.unclear[i] && !a.unclear[i] && b.all[i].within(a.all[i]) {
			m.pair(i, i)
		}
	}
}

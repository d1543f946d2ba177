package merge

import (
	"slices"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// none is the index of an element that has no counterpart.
const none = -1

// matcher finds out which element of a list before is which one after.
type matcher struct {
	*reader
	before, after side
	keys          *listmapkeys.Tree // the declared keys of the list
}

// side is one of the two lists.
type side struct {
	*reader
	all    []*node
	keys   []string // the declared key of each element, read when needed; nil for a list without keys
	hashes []string // of the elements, if equal ones may differ in their texts; or nil
	match  []int    // the index of each element's counterpart, or none

	leaves  [][]leaf            // of the elements without a counterpart
	having  map[leaf][]int      // the elements without a counterpart that have a leaf
	counts  map[leaf]int        // the number of elements that have a leaf, counted when needed
	rivals  map[int][]candidate // by the index of an element without a counterpart
	unclear map[int]bool        // the elements with several equally likely counterparts
}

func (r *reader) newMatcher(before, after []*node, keys *listmapkeys.Tree) *matcher {
	return &matcher{reader: r, keys: keys, before: r.newSide(before), after: r.newSide(after)}
}

func (r *reader) newSide(all []*node) side {
	s := side{reader: r, all: all, match: r.ints.take(len(all))}
	for i := range all {
		s.match[i] = none
	}
	return s
}

// match returns, for each element of after, the index of the same element of before, or none, by
// the rules in the package documentation. No index occurs twice.
func (r *reader) match(before, after []*node, keys *listmapkeys.Tree) []int {
	m := r.newMatcher(before, after, keys)
	m.byContent()
	m.rest()
	return m.after.match
}

// rest pairs elements that are not equal.
func (m *matcher) rest() {
	if len(m.keys.Keys()) > 0 && m.open() {
		m.byKey()
	}
	if m.open() {
		m.byLeaves()
		m.byPlace()
	}
}

// open reports whether both sides have elements without a counterpart.
func (m *matcher) open() bool {
	return slices.Contains(m.before.match, none) && slices.Contains(m.after.match, none)
}

func (m *matcher) pair(i, j int) { m.before.match[i], m.after.match[j] = j, i }

// try pairs i and j if both exist, are equal and have no counterpart.
func (m *matcher) try(i, j int) bool {
	ok := i >= 0 && j >= 0 && i < len(m.before.all) && j < len(m.after.all) &&
		m.before.match[i] == none && m.after.match[j] == none && m.equal(i, j)
	if ok {
		m.pair(i, j)
	}
	return ok
}

func (m *matcher) equal(i, j int) bool {
	if m.before.hashes != nil {
		return m.before.hashes[i] == m.after.hashes[j]
	}
	return m.before.all[i].equal(m.after.all[j])
}

// content returns a text that only equal elements share.
func (s *side) content(i int) string {
	if s.hashes != nil {
		return s.hashes[i]
	}
	return string(s.all[i].text)
}

// byContent pairs equal elements, even those that have moved, in linear time by the algorithm of
// Heckel (1978): first a common beginning and end, then elements that occur once on both sides,
// then the equal neighbours of pairs, then the others at the same index of lists of one length, and
// then in order.
func (m *matcher) byContent() {
	lo, end := 0, 0
	for m.try(lo, lo) {
		lo++
	}
	for m.try(len(m.before.all)-1-end, len(m.after.all)-1-end) {
		end++
	}
	nb, na := len(m.before.all)-end, len(m.after.all)-end
	if lo == nb || lo == na || lo+1 == nb && nb == na { // one element was edited, or replaced
		return
	}
	type places struct{ before, after []int } // the indexes of a content
	contents := make(map[string]*places, nb-lo)
	for i := lo; i < nb; i++ {
		content := m.before.content(i)
		p := contents[content]
		if p == nil {
			p = &places{}
			contents[content] = p
		}
		p.before = append(p.before, i)
	}
	for j := lo; j < na; j++ {
		if p := contents[m.after.content(j)]; p != nil {
			p.after = append(p.after, j)
		}
	}

	for _, p := range contents {
		if len(p.before) == 1 && len(p.after) == 1 {
			m.pair(p.before[0], p.after[0])
		}
	}
	after := m.after.match
	for j := lo + 1; j < na; j++ {
		if after[j-1] != none {
			m.try(after[j-1]+1, j)
		}
	}
	for j := na - 2; j >= lo; j-- {
		if after[j+1] != none {
			m.try(after[j+1]-1, j)
		}
	}
	for j := lo; j < na && nb == na; j++ {
		m.try(j, j)
	}
	for _, p := range contents {
		for _, j := range p.after {
			for len(p.before) > 0 && after[j] == none {
				m.try(p.before[0], j)
				p.before = p.before[1:]
			}
		}
	}
}

// byKey pairs elements whose key no other element has.
func (m *matcher) byKey() {
	m.before.readKeys(m.keys)
	m.after.readKeys(m.keys)
	befores := m.before.byKey()
	for key, j := range m.after.byKey() {
		if i, ok := befores[key]; ok && i != none && j != none {
			m.pair(i, j)
		}
	}
}

// byKey returns the elements without a counterpart by their keys, and none for a key of several
// elements.
func (s *side) byKey() map[string]int {
	open := slices.Clone(s.keys)
	for i, other := range s.match {
		if other != none {
			open[i] = ""
		}
	}
	return positions(open)
}

// otherKey reports whether two elements have different declared keys.
func (m *matcher) otherKey(i, j int) bool {
	return m.before.keys != nil && m.before.keys[i] != m.after.keys[j]
}

// readKeys finds the keys of all elements.
func (s *side) readKeys(keys *listmapkeys.Tree) {
	s.keys = make([]string, len(s.all))
	for i, n := range s.all {
		s.keys[i] = s.keyOf(n, keys)
	}
}

// keyOf returns the values of a list's keys in an element, or their defaults, and "" if all are
// missing. A zero value counts as missing.
func (r *reader) keyOf(n *node, keys *listmapkeys.Tree) string {
	var key []byte
	there := false
	for _, name := range keys.Keys() {
		key = append(key, ',')
		part := member(r.kids(n), name)
		switch {
		case !n.is('{') || part == nil || part.nests() || r.zero(part):
			if text := keys.Default(name); text != "" {
				key, there = append(key, text...), true
			}
		default:
			key, there = part.appendForm(key), true
		}
	}
	if !there {
		return ""
	}
	return string(key)
}

package threeway

import (
	"slices"
	"strings"
)

// list is a list of B2 whose elements are looked for, and what is done to it.
type list struct {
	*node
	keys  []string
	byKey map[string]map[step]int // positions by the names of keys, when needed
	had   *node                   // the list in B, of which only the length may be known
	now   []int                   // positions by index in B, or none

	contents map[content]bool // of its elements, when needed

	order         []int // of the elements that B2 had, by position; nil: as it is
	first, last   []*node
	before, after map[int][]*node // new elements around one, by its position
}

// list returns the list that n is, with the path; nil if it is none.
func (a *applier) list(n *node, path []step) *list {
	if !n.is('[') {
		return nil
	}
	l := a.lists[n]
	if l == nil {
		l = &list{node: n, keys: keysAt(a.keys, path),
			byKey: map[string]map[step]int{}, before: map[int][]*node{}, after: map[int][]*node{}}
		a.lists[n] = l
	}
	return l
}

// maxKeySets is how many sets of names the elements of a list are looked up by: Diff uses
// one, and another one when list-map keys have changed.
const maxKeySets = 8

// index returns the positions by the keys that s has, nil for one set of names too many.
func (l *list) index(s step) map[step]int {
	if l.byKey[s.keys] == nil && len(l.byKey) < maxKeySets { // it may have had other keys before
		l.byKey[s.keys] = positions(byKey(l.kids, strings.Split(s.keys, "\x00")))
	}
	return l.byKey[s.keys]
}

// position returns where the one element is that s selects, or none.
func (l *list) position(s step) int {
	if s.key != "" {
		if i, ok := l.index(s)[s]; ok {
			return i
		}
	} else if s.at > 0 && s.at <= len(l.now) {
		return l.now[s.at-1]
	}
	return none
}

// identify finds the elements of a list without keys.
func (a *applier) identify(c *Change) {
	l := a.list(a.find(c.path), c.path)
	if l == nil || l.now != nil {
		return
	}
	hashes := c.hashes
	if c.all != nil {
		l.had, _ = read(c.all) // Diff or Parse has read it before
		hashes = hashesOf(l.had.kids)
	} else {
		l.had = a.before(c.path)
	}
	known := l.had.is('[') && len(l.had.kids) == len(hashes)
	if !known {
		l.had = &node{kids: make([]*node, len(hashes))}
	}
	m := a.newMatcher(l.had.kids, l.kids, l.keys)
	m.strict = !a.unedited
	m.before.hashes, m.after.hashes = hashes, hashesOf(l.kids)
	m.byContent()
	if known {
		m.rest()
	}
	if a.unedited {
		m.byIndex()
	}
	l.now = slices.Clone(m.before.match)
}

// before returns what B had at the path, nil if only hashes of it are known.
func (a *applier) before(path []step) *node {
	var b *node // known once the path is in a list without keys
	for i, s := range path {
		switch {
		case s.at > 0 && b == nil:
			if l := a.lists[a.find(path[:i])]; l != nil && l.had != nil && s.at <= len(l.had.kids) {
				b = l.had.kids[s.at-1]
			}
		case b == nil:
		case s.at > 0 && b.is('[') && s.at <= len(b.kids):
			b = b.kids[s.at-1]
		case s.key != "" && b.is('['):
			b = a.beforeByKey(b, s)
		case !s.selects() && b.is('{'):
			b = member(b.kids, s.name)
		default:
			return nil
		}
	}
	return b
}

// listKeys is a list and names of keys.
type listKeys struct {
	*node
	keys string
}

func (a *applier) beforeByKey(list *node, s step) *node {
	at := listKeys{list, s.keys}
	index := a.keyed[at]
	if index == nil {
		index = positions(byKey(list.kids, strings.Split(s.keys, "\x00")))
		a.keyed[at] = index
	}
	if i, ok := index[s]; ok && i != none {
		return list.kids[i]
	}
	return nil
}

// element returns the one element that s selects, nil if there is none.
func (l *list) element(s step) *node {
	if i := l.position(s); i != none {
		return l.kids[i]
	}
	return nil
}

// insert puts a new element behind one neighbour or before the other, or at an
// end of the list if B2 has neither.
func (l *list) insert(element *node, p *place) {
	element.parent = l.node
	if p == nil {
		p = &place{}
	}
	if i := l.position(p.after); i != none {
		l.after[i] = append(l.after[i], element)
	} else if i := l.position(p.before); i != none {
		l.before[i] = append(l.before[i], element)
	} else if !p.after.selects() {
		l.first = append(l.first, element)
	} else {
		l.last = append(l.last, element)
	}
	l.touch()
}

// reorder puts elements into the order of want, unless they are no longer in the
// one that they had in B. What the user put behind one of them goes with it.
func (l *list) reorder(want []step, from []int, always bool) bool {
	had := slices.Repeat([]int{none}, len(want)) // positions, in B's order
	var to []int                                 // and in H's
	for j, s := range want {
		if i := l.position(s); i != none {
			had[from[j]] = i
			to = append(to, i)
		}
	}
	had = slices.DeleteFunc(had, func(i int) bool { return i == none })
	if always {
		slices.Sort(had)
	}
	if slices.Equal(had, to) {
		return true
	}
	if l.order != nil || !rises(had) {
		return false
	}
	for i := range had[0] {
		l.order = append(l.order, i)
	}
	end := append(had[1:], len(l.kids))
	for _, i := range to {
		n, _ := slices.BinarySearch(had, i)
		for ; i < end[n]; i++ {
			l.order = append(l.order, i)
		}
	}
	l.touch()
	return true
}

// rises reports whether each position is behind the one before.
func rises(positions []int) bool {
	for i := 1; i < len(positions); i++ {
		if positions[i-1] >= positions[i] {
			return false
		}
	}
	return true
}

// weave puts the elements into their order, with the new ones among them.
func (l *list) weave() {
	if l.done == nil {
		return
	}
	kids := l.first
	put := func(i int) {
		kids = append(kids, l.before[i]...)
		kids = append(kids, l.kids[i])
		kids = append(kids, l.after[i]...)
	}
	for _, i := range l.order {
		put(i)
	}
	for i := len(l.order); i < len(l.kids); i++ {
		put(i)
	}
	l.kids = append(kids, l.last...)
}

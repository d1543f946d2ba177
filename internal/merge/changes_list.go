package merge

import (
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// list is a list of the edited object, and the edits of it.
type list struct {
	*node
	keys []string
	tree *listmapkeys.Tree // which has the keys too, and their defaults

	elements keyed // the elements when the list was read
	before   keyed // the elements in before, of which only the number may be known
	now      []int // positions by index in before, or none

	counts map[string]int // of equal elements by their hash, computed when needed

	order         []int // the new order of elements, by position; nil if unchanged
	first, last   []*node
	ahead, behind map[int][]*node // new elements around one, by its position
}

// list returns the list of n, at the path, or nil if n is not a list. Before is its former value,
// if that is known.
func (a *applier) list(n *node, path []step, before *node) *list {
	if !n.is('[') {
		return nil
	}
	l := a.lists[n]
	if l == nil {
		l = &list{node: n, keys: keysAt(a.keys, path), tree: treeAt(a.keys, path), elements: keyed{all: n.kids},
			ahead: map[int][]*node{}, behind: map[int][]*node{}}
		a.lists[n] = l
		if before.is('[') {
			a.identify(l, before.kids, hashesOf(before.kids))
		}
	}
	return l
}

// identify finds the elements of a list by their hashes or, if it is known, by their former
// content.
func (a *applier) identify(l *list, before []*node, hashes []string) {
	if l.now != nil {
		return
	}
	known := before != nil
	if !known {
		before = make([]*node, len(hashes))
	}
	m := a.newMatcher(before, l.kids, l.tree)
	m.before.hashes, m.after.hashes = hashes, hashesOf(l.kids)
	m.byContent()
	if known {
		m.rest()
	}
	if a.unedited {
		m.byOrder()
	}
	l.before.all, l.now = before, slices.Clone(m.before.match)
	for i, at := range l.now {
		if !known && at != none {
			before[i] = l.kids[at] // which it equals, or replaces if before is unknown
		}
	}
}

// element returns the only element that s selects, or nil, and its former value, or nil if that is
// unknown.
func (l *list) element(s step) (now, before *node) {
	i := l.position(s)
	if i == none {
		return nil, nil
	}
	if s.at > 0 {
		before = l.before.all[s.at-1]
	} else if b := l.before.position(s); b != none {
		before = l.before.all[b]
	}
	return l.kids[i], before
}

// position returns the index of the only element that s selects, or none.
func (l *list) position(s step) int {
	if s.key == "" && s.at > 0 && s.at <= len(l.now) {
		return l.now[s.at-1]
	}
	return l.elements.position(s)
}

// keyed finds elements by their keys.
type keyed struct {
	all    []*node
	byKeys map[string]map[step]int // positions by the names of keys
}

// maxKeySets bounds the sets of keys by which elements of a list are found. Diff uses one, and
// another one after the list-map keys have changed.
const maxKeySets = 8

// index returns the positions by the keys that s has, or nil if there are too many sets of keys.
func (k *keyed) index(s step) map[step]int {
	if k.byKeys[s.keys] == nil && len(k.byKeys) < maxKeySets {
		if k.byKeys == nil {
			k.byKeys = map[string]map[step]int{}
		}
		k.byKeys[s.keys] = positions(selectorsByKey(k.all, strings.Split(s.keys, "\x00")))
	}
	return k.byKeys[s.keys]
}

// position returns the index of the only element that has the key, or none.
func (k *keyed) position(s step) int {
	if s.key != "" {
		if i, ok := k.index(s)[s]; ok {
			return i
		}
	}
	return none
}

// insert puts a new element behind one neighbour or ahead of the other, or at an end of the
// list if both are gone.
func (l *list) insert(element *node, p *place) {
	element.parent = l.node
	if p == nil {
		p = &place{}
	}
	if i := l.position(p.after); i != none {
		l.behind[i] = append(l.behind[i], element)
	} else if i := l.position(p.before); i != none {
		l.ahead[i] = append(l.ahead[i], element)
	} else if !p.after.selects() {
		l.first = append(l.first, element)
	} else {
		l.last = append(l.last, element)
	}
	l.touch()
}

// reorder puts elements into the order of want, unless the user has reordered them. An element that
// the user added behind one of them moves along.
func (l *list) reorder(want []step, from []int, always bool) bool {
	had := slices.Repeat([]int{none}, len(want)) // positions in the former order
	var to []int                                 // positions in the wanted order
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

// rises reports whether each position is greater than the previous one.
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
		kids = append(kids, l.ahead[i]...)
		kids = append(kids, l.kids[i])
		kids = append(kids, l.behind[i]...)
	}
	for _, i := range l.order {
		put(i)
	}
	for i := len(l.order); i < len(l.kids); i++ {
		put(i)
	}
	l.kids = append(kids, l.last...)
}

package patch

import "github.com/crdkit/crdkit/internal/listmatch"

// matcher finds out which element of a list before is which one after.
type matcher struct {
	*reader
	before, after []*node
	said          []string // the list's keys, nil if nobody has said them
	from, to      []int    // after's index to before's, and back, or none
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
// that it is, or none, by the rule of package listmatch. No index is there twice.
func (r *reader) match(before, after []*node, said []string) []int {
	m := r.newMatcher(before, after, said)
	m.byText()
	listmatch.Match(elements{r, before}, elements{r, after}, m.from, said)
	return m.from
}

// elements are those of a list, for package listmatch.
type elements struct {
	*reader
	all []*node
}

func (e elements) Len() int { return len(e.all) }

func (e elements) Key(i int, name string) string {
	n := e.all[i]
	if !n.is('{') {
		return ""
	}
	part := member(e.kids(n), name)
	switch {
	case part == nil || part.nests() || e.zero(part):
		return ""
	case part.is('"'):
		return string(unquote(part.text))
	default:
		return string(part.text)
	}
}

func (e elements) Leaves(i int) *listmatch.Leaves {
	l := &listmatch.Leaves{}
	e.leaves(l, 0, e.all[i])
	return l
}

// leaves collects the leaves of a value.
func (r *reader) leaves(l *listmatch.Leaves, path listmatch.Path, n *node) {
	if !l.Enter() {
		return
	}
	switch {
	case n.is('{'):
		for _, kid := range r.kids(n) {
			r.leaves(l, path.Member(kid.name), kid)
		}
	case n.is('['):
		for _, kid := range r.kids(n) {
			r.leaves(l, path.Element(), kid)
		}
	case r.zero(n):
	case n.is('"'):
		l.Text(path, string(unquote(n.text)))
	default:
		l.Value(path, n.text)
	}
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
		return // one element was edited, or replaced
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

package merge

// member adds a member that before lacks to an object. If the user has added one of that name,
// theirs is merged into it.
func (a *applier) member(object, theirs *node, path []step, over bool) {
	if ours := object.at(theirs.name); ours != nil {
		a.merge(ours, theirs, append(path[:len(path):len(path)], step{name: string(theirs.name)}), over)
	} else {
		object.add(theirs)
	}
}

// merge adds the members and the list elements that only theirs has to ours, the user's value. If
// over is set, theirs also replaces the rest of ours. Below the depth of the longest path, nothing
// is added.
func (a *applier) merge(ours, theirs *node, path []step, over bool) {
	switch {
	case len(path) == maxPath:
	case ours.is('{') && theirs.is('{'):
		for _, kid := range theirs.kids {
			a.member(ours, kid, path, over)
		}
		return
	case ours.is('[') && theirs.is('['):
		if l := a.list(ours, path, nil); len(l.keys) > 0 {
			a.mergeElements(l, theirs, path, over)
			return
		} else if !over {
			l.addNew(theirs)
			return
		}
	}
	if over {
		ours.replace(theirs.text)
	}
}

// addNew adds the elements of theirs to a list without keys, except those that it has.
func (l *list) addNew(theirs *node) {
	if l.counts == nil {
		l.counts = map[string]int{}
		for _, hash := range hashesOf(l.kids) {
			l.counts[hash]++
		}
	}
	needed := map[string]int{}
	for j, hash := range hashesOf(theirs.kids) {
		if needed[hash]++; needed[hash] > l.counts[hash] {
			l.counts[hash]++
			l.add(theirs.kids[j])
		}
	}
}

// mergeElements merges the elements of theirs that have keys into a list.
func (a *applier) mergeElements(l *list, theirs *node, path []step, over bool) {
	for j, s := range selectorsByKey(theirs.kids, l.keys) {
		index := l.elements.index(s)
		if !s.selects() || index == nil {
			continue
		}
		if i, there := index[s]; !there {
			index[s] = len(l.kids)
			l.add(theirs.kids[j])
		} else if i != none {
			a.merge(l.kids[i], theirs.kids[j], path, over)
		}
	}
}

// element is like member for a list with keys, and notes new elements of the list.
func (a *applier) element(l *list, c *Change, over bool) {
	s := c.path[len(c.path)-1]
	index := l.elements.index(s)
	i, there := index[s]
	switch {
	case index == nil:
	case !there:
		index[s] = none // so that a second one is not found
		l.insert(c.node(), c.place)
	case i != none:
		a.merge(l.kids[i], c.node(), c.path, over)
	}
}

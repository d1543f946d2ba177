package lost

import "fmt"

// Apply returns b2, which is B or an edit of it, with the changes. The edit wins:
// a change is void where B2 is no longer as B was. Keys are those that Diff was
// given. The error says that b2 is no JSON object.
func (c Changes) Apply(b2 []byte, keys Keys) ([]byte, error) {
	root, err := readObject(b2)
	if err != nil {
		return nil, fmt.Errorf("edited: %w", err)
	}
	a := applier{root: root, keys: keys, lists: map[*node]*list{}}
	var edits []func()
	for i := range c {
		if edit := a.plan(&c[i]); edit != nil {
			edits = append(edits, edit)
		}
	}
	for _, edit := range edits {
		edit()
	}
	for _, l := range a.lists {
		l.weave()
	}
	return root.append(make([]byte, 0, len(b2))), nil
}

// applier finds what all changes are about before anything is edited: an element
// is found by what it was.
type applier struct {
	root  *node
	keys  Keys
	lists map[*node]*list
}

// plan returns the edit that a change is; nil if it is void, or is noted in a list.
func (a *applier) plan(c *Change) func() {
	path, last := c.path[:len(c.path)-1], c.path[len(c.path)-1]
	switch {
	case c.order != nil:
		if l := a.list(a.find(c.path), c.path); l != nil {
			l.reorder(c.order, c.from)
		}
	case c.insert:
		if l := a.list(a.find(c.path), c.path); l != nil {
			l.insert(c.node(), c.after, c.before)
		}
	case c.had() != "":
		n := a.find(c.path)
		if n == nil || n.hash() != c.had() {
			return nil
		}
		if c.value == nil {
			return n.remove
		}
		return func() { n.replace(c.value) }
	case last.selects():
		if l := a.list(a.find(path), path); l != nil {
			return a.element(l, c)
		}
	default:
		if object := a.find(path); object.is('{') {
			return func() { a.member(object, c.node(), path) }
		}
		if len(path) == 1 && a.root.member(path[0].name) == nil {
			// One at the top, such as spec, goes when the last thing goes that the user can
			// see in it. That says nothing about the rest.
			object := &node{name: path[0].name, text: []byte("{}")}
			object.add(c.node())
			return func() { a.member(a.root, object, nil) }
		}
	}
	return nil
}

// find returns the value at a path, nil if there is none.
func (a *applier) find(path []step) *node {
	n := a.root
	for i, s := range path {
		switch {
		case n.is('{') && !s.selects():
			n = n.member(s.name)
		case n.is('[') && s.selects():
			n = a.list(n, path[:i]).element(s)
		default:
			return nil
		}
	}
	return n
}

package threeway

import "slices"

// done is what has been done to a node. All the rest stays as it was read, so that what
// is done later to a part of a value that has been replaced does no harm.
type done struct {
	removed bool   // from its parent
	instead []byte // is to be written instead of it
}

// touch notes that something is done to n, or to its kids.
func (n *node) touch() *done {
	for p := n; p != nil && p.done == nil; p = p.parent {
		p.done = &done{}
	}
	return n.done
}

// at returns the member of that name, or nil.
func (n *node) at(name []byte) *node {
	i, ok := find(n.kids, name)
	if !ok || n.kids[i].removed() {
		return nil
	}
	return n.kids[i]
}

func (n *node) removed() bool { return n.done != nil && n.done.removed }

// add gives an object a member that it has not, or a list a last element.
func (n *node) add(kid *node) {
	kid.parent = n
	n.touch()
	if n.is('[') {
		n.kids = append(n.kids, kid)
	} else if i, removed := find(n.kids, kid.name); removed {
		n.kids[i] = kid
	} else {
		n.kids = slices.Insert(n.kids, i, kid)
	}
}

// remove takes n from its parent.
func (n *node) remove() { n.touch().removed = true }

// replace puts a text in the place of n.
func (n *node) replace(text []byte) { n.touch().instead = text }

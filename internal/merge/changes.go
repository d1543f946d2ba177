package merge

import (
	"slices"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// Changes are the changes from before to after, as [Diff] finds or [Parse] reads them. They are
// independent, so that any of them may be left out.
type Changes []Change

// Change is a change at one place, of a kind that the package documentation lists.
type Change struct {
	path   []step
	value  []byte // the value in after; nil if after has none, or another order
	was    string // the hash of the value in before; "" if before has none
	insert bool   // whether the value is a new element of the list at the path
	made   int    // of a part of a change: how many objects around the value are parts of the change too

	*place      // of a new element
	*reordering // of a list
	*elements   // of a list
}

// elements are those of a list without keys in before. They are not a change themselves, but other
// changes need them to find the elements again after a user has edited the list.
type elements struct {
	all    []byte   // a JSON list
	hashes []string // instead of all, to take less space
}

// place is where a new element belongs: between the nearest elements of after that are also in
// before. The zero step stands for the end of the list.
type place struct{ after, before step }

// reordering has the selectors of the elements of a list whose order changed, in the order of
// after, and for each its place among them in before.
type reordering struct {
	want []step
	from []int
}

// maxPath is the largest number of steps of a path. A difference below is a difference of the whole
// object at that depth.
const maxPath = 100

// Path returns where a change is, for errors.
func (c *Change) Path() string {
	var b []byte
	for i, s := range c.path {
		if i > 0 && !s.selects() {
			b = append(b, '.')
		}
		switch {
		case s.key != "":
			b = append(append(append(b, '['), s.key...), ']')
		case s.at > 0:
			b = append(appendInt(s.at-1, append(b, '[')), ']')
		default:
			b = append(b, s.name...)
		}
	}
	return string(b)
}

// node returns the value, as a member of that name.
func (c *Change) node() *node {
	n, _ := read(c.value) // Diff or Parse has read it before
	n.name = []byte(c.path[len(c.path)-1].name)
	return n
}

// keysAt returns the sorted list-map keys of the list at a path, or nil. The path has no steps for
// elements of lists: that of spec.toppings[].extras is spec, toppings, extras.
func keysAt(keys *listmapkeys.Tree, path []step) []string {
	return slices.Compact(slices.Sorted(slices.Values(treeAt(keys, path).Keys())))
}

// treeAt returns the declared keys at and below a path.
func treeAt(tree *listmapkeys.Tree, path []step) *listmapkeys.Tree {
	for _, s := range path {
		if !s.selects() {
			tree = tree.Field([]byte(s.name))
		}
	}
	return tree
}

// Compact returns the changes with the hashes of elements instead of the elements, by which an
// element of a list without keys is not found after it has been edited.
func (c Changes) Compact() Changes {
	c = slices.Clone(c)
	for i := range c {
		if c[i].elements != nil && c[i].all != nil {
			n, _ := read(c[i].all) // Diff or Parse has read it before
			c[i].elements = &elements{hashes: hashesOf(n.kids)}
		}
	}
	return c
}

// Choices returns the indexes of the changes that may be left out, which are all except those that
// help to find elements.
func (c Changes) Choices() (all []int) {
	for i := range c {
		if c[i].elements == nil {
			all = append(all, i)
		}
	}
	return all
}

// Parts returns the changes, but splits each that adds an object into changes that add its members,
// so that some can be left out.
func (c Changes) Parts() (parts Changes) {
	for _, c := range c {
		parts = c.parts(parts)
	}
	return parts
}

func (c Change) parts(all Changes) Changes {
	last := c.path[len(c.path)-1]
	n := &node{}
	if c.value != nil && c.was == "" && !c.insert && !last.selects() && len(c.path) < maxPath {
		n, _ = read(c.value) // Diff or Parse has read it before
	}
	if !n.is('{') || len(n.kids) == 0 {
		return append(all, c)
	}
	for _, kid := range n.kids {
		path := slices.Concat(c.path, []step{{name: string(kid.name)}})
		all = Change{path: path, value: kid.text, made: c.made + 1}.parts(all)
	}
	return all
}

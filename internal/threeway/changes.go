package threeway

import (
	"cmp"
	"slices"

	"github.com/crdkit/crdkit/internal/listkeys"
)

// Changes are what makes after of before. They come from [Diff] or [Parse]. Each is
// independent of the others, so that any of them may be left out.
type Changes []Change

// Change is what is to be done at one place. Its kinds are listed in the
// package's documentation.
type Change struct {
	path   []step
	value  []byte // what after has there; nil: nothing, or another order
	was    string // the hash of what before has; "": nothing
	insert bool   // whether the value is a new element of the list at the path
	had    int    // of a part of a change: how many steps of its path before has, plus one; or 0

	*place      // of a new element
	*reordering // of a list
	*elements   // of a list
}

// elements are those of a list without keys in before, so that they can be found again. They
// are not a change themselves: changes need them.
type elements struct {
	all    []byte   // a JSON list
	hashes []string // instead of it, to take less space
}

// place is between the neighbors of a new element: the nearest elements of after that are
// also in before. The zero step stands for the end of the list.
type place struct{ after, before step }

// reordering is the selectors of a list's elements in the order of after, and for each the
// place among them that it has in before.
type reordering struct {
	want []step
	from []int
}

// maxPath is how many steps a path has at most. Objects differ whole where a
// path would be longer.
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

// keysAt returns the list-map keys of the list at a path, sorted; nil if it has none.
// Elements of lists on the way contribute nothing to the path: that of
// spec.toppings[].extras is spec, toppings, extras.
func keysAt(keys *listkeys.Tree, path []step) []string {
	return slices.Compact(slices.Sorted(slices.Values(treeAt(keys, path).Keys())))
}

// treeAt returns what is known of the value at a path.
func treeAt(tree *listkeys.Tree, path []step) *listkeys.Tree {
	for _, s := range path {
		if !s.selects() {
			tree = tree.Field([]byte(s.name))
		}
	}
	return tree
}

// Compact returns the changes with the hashes of elements instead of the elements. Then an
// element of a list without keys is not found any more once it has been edited.
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

// Choices returns which of the changes may be left out: not those that help to find
// elements.
func (c Changes) Choices() (all []int) {
	for i := range c {
		if c[i].elements == nil {
			all = append(all, i)
		}
	}
	return all
}

// Parts returns the changes with each that adds an object taken apart into those that add
// its members, so that some can be left out.
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
		all = Change{path: path, value: kid.text, had: cmp.Or(c.had, len(c.path))}.parts(all)
	}
	return all
}

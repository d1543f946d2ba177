package lost

import (
	"cmp"
	"slices"
)

// Changes are what makes H of B. They come from [Diff] or [Parse]. Each is
// independent of the others, so that any of them may be left out.
type Changes []Change

// Change is what is to be done at one place. Its kinds are listed in the
// package's documentation.
type Change struct {
	path   []step
	value  []byte // what H has there; nil: nothing, or another order
	was    string // the hash of what B had; "": nothing, or the path ends in it
	insert bool   // whether the value is a new element of the list at the path

	// Of a new element, its neighbours: the nearest elements in H that are also in
	// B. The zero step: there is none.
	after, before step

	// Of a list in another order, the selectors of its elements in H's order, and
	// for each the place among them that it had in B.
	order []step
	from  []int
}

// maxPath is how many steps a path has at most. Objects differ whole where a
// path would be longer.
const maxPath = 100

// had returns the hash of what B had at the path; "" if it had nothing.
func (c *Change) had() string { return cmp.Or(c.was, c.path[len(c.path)-1].hash) }

// node returns the value, as a member of that name.
func (c *Change) node() *node {
	n, _ := read(c.value) // Diff or Parse has read it before
	n.name = c.path[len(c.path)-1].name
	return n
}

// Keys returns the list-map keys of the list at a path of field names; nil if the
// list has none. Elements of lists on the way contribute nothing to the path:
// that of spec.toppings[].extras is spec, toppings, extras. A nil Keys is one
// that returns nil.
type Keys func(path []string) []string

// at returns the keys of the list at a path, sorted.
func (k Keys) at(path []step) []string {
	if k == nil {
		return nil
	}
	var names []string
	for _, s := range path {
		if !s.selects() {
			names = append(names, s.name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(k(names))))
}

package merge

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// Diff returns the changes from before to after, the texts of two JSON objects. It does not read
// texts that are equal, and returns an error if one is not a JSON object.
//
// The caller gives both objects the same apiVersion, kind and metadata, except for labels and
// annotations, because [Parse] refuses other changes.
func Diff(before, after []byte, keys *listmapkeys.Tree) (Changes, error) {
	if bytes.Equal(before, after) {
		return nil, nil
	}
	r := borrow()
	defer r.release()
	r.whole = true
	b, err := r.object(before, nil, true)
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	a, err := r.object(after, b, true)
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	return Object{b}.Diff(Object{a}, keys), nil
}

// Diff returns the changes from the object to after.
func (o Object) Diff(after Object, keys *listmapkeys.Tree) Changes {
	r := borrow()
	defer r.release()
	d := differ{reader: r, keys: keys}
	d.object(o.root, after.root)
	return d.changes
}

type differ struct {
	*reader
	keys    *listmapkeys.Tree
	path    []step // of the values that are compared
	changes Changes
}

// value compares the values one step further.
func (d *differ) value(s step, before, after *node) {
	inside := func(compare func(before, after *node)) {
		d.path = append(d.path, s)
		compare(before, after)
		d.path = d.path[:len(d.path)-1]
	}
	deeper := len(d.path)+1 < maxPath
	switch {
	case before.equal(after):
	case deeper && before.is('{') && after.is('{'):
		inside(d.object)
	case deeper && before.is('[') && after.is('['):
		inside(d.list)
	case !before.same(after):
		d.change(Change{value: after.text, was: before.hash()}, s)
	}
}

// change adds a change at the path, or at a step from there.
func (d *differ) change(c Change, s ...step) {
	c.path = slices.Concat(d.path, s)
	c.value = bytes.Clone(c.value)
	d.changes = append(d.changes, c)
}

func (d *differ) object(before, after *node) {
	befores, afters := before.kids, after.kids
	for len(befores)+len(afters) > 0 {
		name := first(befores, afters)
		b, a := take(&befores, name), take(&afters, name)
		if b == a {
			continue
		}
		switch s := (step{name: string(name)}); {
		case b == nil:
			d.change(Change{value: a.text}, s)
		case a == nil:
			d.change(Change{was: b.hash()}, s)
		default:
			d.value(s, b, a)
		}
	}
}

func (d *differ) list(before, after *node) {
	keys, begin := keysAt(d.keys, d.path), len(d.changes)
	befores, afters := before.kids, after.kids
	steps, newSteps := selectorsByKey(befores, keys), selectorsByKey(afters, keys)
	index := positions(steps)
	keyed := len(keys) > 0 && len(index) == len(befores) && len(positions(newSteps)) == len(afters)
	m := d.newMatcher(befores, afters, treeAt(d.keys, d.path))
	if keyed {
		for j, s := range newSteps {
			if i, ok := index[s]; ok {
				m.pair(i, j)
			}
		}
	} else {
		steps = atIndexes(len(befores))
		m.before.hashes, m.after.hashes = hashesOf(befores), hashesOf(afters)
		m.byContent()
		m.rest()
		m.byOrder()
	}
	from := m.after.match

	for i, kept := range m.before.match {
		if kept == none {
			d.change(Change{was: befores[i].hash()}, steps[i])
		}
	}
	d.order(steps, from)
	places := places(steps, from)
	for j, i := range from {
		switch c := (Change{value: afters[j].text, place: places[j]}); {
		case i != none:
			d.value(steps[i], befores[i], afters[j])
		case keyed:
			d.change(c, newSteps[j])
		default:
			c.insert = true
			d.change(c)
		}
	}
	// The elements of the outer list include a list within it.
	inside := slices.ContainsFunc(d.path, func(s step) bool { return s.at > 0 })
	if !keyed && !inside && len(d.changes) > begin && len(befores) > 0 {
		had := Change{path: slices.Clone(d.path), elements: &elements{all: bytes.Clone(before.text)}}
		d.changes = slices.Insert(d.changes, begin, had)
	}
}

// places returns the place of each element of after that is not in before, and is empty for
// the others.
func places(steps []step, from []int) []*place {
	places := make([]*place, len(from))
	var last step
	for j, i := range from {
		if i != none {
			last = steps[i]
		} else {
			places[j] = &place{after: last}
		}
	}
	last = step{}
	for j, i := range slices.Backward(from) {
		switch {
		case i != none:
			last = steps[i]
		case places[j].after.selects() || last.selects():
			places[j].before = last
		default:
			places[j] = nil
		}
	}
	return places
}

// order compares the order of the elements that are in both lists.
func (d *differ) order(steps []step, from []int) {
	moved := slices.DeleteFunc(slices.Clone(from), func(i int) bool { return i == none })
	if rises(moved) {
		return
	}
	sorted := slices.Sorted(slices.Values(moved))
	for len(moved) > 0 && moved[0] == sorted[0] { // elements that come first in both
		moved, sorted = moved[1:], sorted[1:]
	}
	var o reordering
	for _, i := range moved {
		place, _ := slices.BinarySearch(sorted, i)
		o.want, o.from = append(o.want, steps[i]), append(o.from, place)
	}
	d.change(Change{reordering: &o})
}

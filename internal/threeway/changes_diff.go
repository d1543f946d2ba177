package threeway

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/listkeys"
)

// Diff returns the changes that make h of b, the texts of two JSON objects. It
// does not read texts that are equal. The error says that one is not a JSON object.
//
// All of the objects is compared. The caller gives both the same apiVersion, kind
// and metadata, but for labels and annotations: [Parse] refuses other changes.
func Diff(b, h []byte, keys *listkeys.Tree) (Changes, error) {
	if bytes.Equal(b, h) {
		return nil, nil
	}
	r := borrow()
	defer r.release()
	r.whole = true
	before, err := r.object(b, nil, true)
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	after, err := r.object(h, before, true)
	if err != nil {
		return nil, fmt.Errorf("after: %w", err)
	}
	return r.changes(before, after, keys), nil
}

// Diff returns the changes that make h of the object.
func (o Object) Diff(h Object, keys *listkeys.Tree) Changes {
	r := borrow()
	defer r.release()
	return r.changes(o.root, h.root, keys)
}

func (r *reader) changes(b, h *node, keys *listkeys.Tree) Changes {
	d := differ{reader: r, keys: keys}
	d.object(b, h)
	return d.changes
}

type differ struct {
	*reader
	keys    *listkeys.Tree
	path    []step // of what is compared
	changes Changes
}

// value compares the values one step further.
func (d *differ) value(s step, b, h *node) {
	inside := func(compare func(b, h *node)) {
		d.path = append(d.path, s)
		compare(b, h)
		d.path = d.path[:len(d.path)-1]
	}
	deeper := len(d.path)+1 < maxPath
	switch {
	case b.equal(h):
	case deeper && b.is('{') && h.is('{'):
		inside(d.object)
	case deeper && b.is('[') && h.is('['):
		inside(d.list)
	case !b.same(h):
		d.change(Change{value: h.text, was: b.hash()}, s)
	}
}

// change adds a change at the path, or at a step from there.
func (d *differ) change(c Change, s ...step) {
	c.path = slices.Concat(d.path, s)
	c.value = plain(c.value)
	d.changes = append(d.changes, c)
}

func (d *differ) object(b, h *node) {
	befores, afters := b.kids, h.kids
	for len(befores)+len(afters) > 0 {
		name := first(befores, afters)
		b, h := take(&befores, name), take(&afters, name)
		if b == h {
			continue
		}
		switch s := (step{name: string(name)}); {
		case b == nil:
			d.change(Change{value: h.text}, s)
		case h == nil:
			d.change(Change{was: b.hash()}, s)
		default:
			d.value(s, b, h)
		}
	}
}

func (d *differ) list(b, h *node) {
	keys, begin := keysAt(d.keys, d.path), len(d.changes)
	bs, hs := byKey(b.kids, keys), byKey(h.kids, keys)
	index := positions(bs)
	keyed := len(keys) > 0 && len(index) == len(bs) && len(positions(hs)) == len(hs)
	m := d.newMatcher(b.kids, h.kids, keys)
	if keyed {
		for j, s := range hs {
			if i, ok := index[s]; ok {
				m.pair(i, j)
			}
		}
	} else {
		bs = atIndexes(len(b.kids))
		m.before.hashes, m.after.hashes = hashesOf(b.kids), hashesOf(h.kids)
		m.byContent()
		m.rest()
		m.byIndex()
	}
	from := m.after.match

	for i, kept := range m.before.match {
		if kept == none {
			d.change(Change{was: b.kids[i].hash()}, bs[i])
		}
	}
	d.order(bs, from)
	places := places(bs, from)
	for j, i := range from {
		switch c := (Change{value: h.kids[j].text, place: places[j]}); {
		case i != none:
			d.value(bs[i], b.kids[i], h.kids[j])
		case keyed:
			d.change(c, hs[j])
		default:
			c.insert = true
			d.change(c)
		}
	}
	inList := slices.ContainsFunc(d.path, func(s step) bool { return s.at > 0 }) // which has this one in its elements
	if !keyed && !inList && len(d.changes) > begin && len(b.kids) > 0 {
		had := Change{path: slices.Clone(d.path), elements: &elements{all: plain(b.text)}}
		d.changes = slices.Insert(d.changes, begin, had)
	}
}

// places returns the place of each element of H that is not in B, and is empty for the
// others.
func places(b []step, from []int) []*place {
	places := make([]*place, len(from))
	var last step
	for j, i := range from {
		if i != none {
			last = b[i]
		} else {
			places[j] = &place{after: last}
		}
	}
	last = step{}
	for j, i := range slices.Backward(from) {
		switch {
		case i != none:
			last = b[i]
		case places[j].after.selects() || last.selects():
			places[j].before = last
		default:
			places[j] = nil
		}
	}
	return places
}

// order compares the order of the elements that are in both lists.
func (d *differ) order(b []step, from []int) {
	moved := slices.DeleteFunc(slices.Clone(from), func(i int) bool { return i == none })
	if rises(moved) {
		return
	}
	sorted := slices.Sorted(slices.Values(moved))
	for len(moved) > 0 && moved[0] == sorted[0] { // whatever comes first in both
		moved, sorted = moved[1:], sorted[1:]
	}
	var o reordering
	for _, i := range moved {
		place, _ := slices.BinarySearch(sorted, i)
		o.want, o.from = append(o.want, b[i]), append(o.from, place)
	}
	d.change(Change{reordering: &o})
}

// plain returns a copy of a JSON text in which <, > and & are as they are: encoders that
// think of HTML need six bytes for each.
func plain(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u00`)) {
		return bytes.Clone(text)
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		switch escape := string(text[i:min(i+6, len(text))]); strings.ToLower(escape) {
		case `\u003c`, `\u003e`, `\u0026`:
			out = append(out, map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}[strings.ToLower(escape)])
			i += 5
		default:
			out = append(out, text[i], text[i+1])
			i++
		}
	}
	return out
}

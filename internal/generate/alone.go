package generate

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// alone is how the CEL rules of one place of a schema are looked at alone: an accepted object
// with a value there, and choices of a value that may be put into its place. valid says no
// more than that some rule refuses an object; where an object is refused for a part of it
// and there is little else, it is known which.
type alone struct {
	place  []string
	object map[string]any
	known  *choice
}

// maxAlone bounds the work of finding all of them.
const maxAlone = 1 << 10

// lookAlone finds for each place that has CEL rules how they can be looked at alone, if
// that is possible.
func (g *Generator) lookAlone() {
	found, left := map[string]*alone{}, maxAlone
	var walk func(n *node, place []string)
	walk = func(n *node, place []string) {
		if n == nil || n.err != nil {
			return
		}
		if len(n.source.XValidations) > 0 && len(place) > 0 {
			id := strings.Join(place, "\x00")
			if _, ok := found[id]; !ok {
				found[id] = g.newAlone(n, place, &left)
			}
			n.alone = found[id]
		}
		for _, v := range append([]*node{n}, n.variants...) {
			for _, p := range v.properties {
				walk(p.node, append(place[:len(place):len(place)], p.name))
			}
			for _, part := range []*node{v.entries, v.items} {
				walk(part, append(place[:len(place):len(place)], ""))
			}
		}
	}
	walk(g.root, nil)
}

func (g *Generator) newAlone(n *node, place []string, left *int) *alone {
	a := &alone{place: place}
	for try := 0; try < tries && *left > 0 && a.object == nil; try++ {
		*left--
		c, next := g.known[0].clone(), source(nil)
		if try > 0 {
			c, next = &choice{}, random(0, try, []float64{0.9, 0.75, 0.5}[try%3])
		}
		if object, ok := g.try(c, place, next); ok {
			a.object = object
		}
	}
	for try := 0; try < tries && *left > 0 && a.object != nil; try++ {
		*left--
		c := &choice{}
		v, err := newMaker(random(0, try, []float64{1, 0.9, 0.75, 0.5}[try%4])).value(n, c, nil)
		if err == nil && g.acceptsAlone(a, v) {
			a.known = c
			return a
		}
	}
	return nil
}

func (g *Generator) acceptsAlone(a *alone, value any) bool {
	object, ok := replace(runtime.DeepCopyJSON(a.object), g.schema, a.place, "", func(any, string) any { return value })
	return ok && g.valid(object.(map[string]any))
}

// mend changes choices, from the inside out, so that what is made of them is accepted where
// it can be looked at alone.
func (g *Generator) mend(c *choice, place []string) {
	m := newMaker(nil)
	left := maxTries
	m.mend = func(n *node, c *choice, value any) any {
		if left--; left <= 0 || g.acceptsAlone(n.alone, value) {
			return value
		}
		at := n.alone.known.clone()
		s := &search{left: maxTries / 4, try: func(c *choice) (any, bool) {
			v, err := newMaker(nil).value(n, c, nil)
			return v, err == nil && g.acceptsAlone(n.alone, v)
		}}
		s.toward(at, c)
		if s.value == nil {
			s.value, _ = s.try(at)
		}
		c.set(at)
		return s.value
	}
	m.value(g.root, c, place) // if it cannot be made, it is mended as far as it was made
}

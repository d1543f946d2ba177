package generate

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// ruled is a place of the schema that has CEL rules. valid reports only that some rule refuses an
// object. In an accepted object, a value at the place can be tried alone.
type ruled struct {
	place  []string
	object map[string]any // accepted, with a value at the place
	known  *choice        // of a value that is accepted there
}

// maxRuled bounds the objects that are tried to find all of them.
const maxRuled = 1 << 10

// findRuled finds the places that have CEL rules, if values can be tried there.
func (g *Generator) findRuled() {
	found, left := map[string]*ruled{}, maxRuled
	var walk func(n *node, place []string)
	walk = func(n *node, place []string) {
		if n == nil || n.err != nil {
			return
		}
		if len(n.source.XValidations) > 0 && len(place) > 0 {
			id := strings.Join(place, "\x00")
			if _, ok := found[id]; !ok {
				found[id] = g.newRuled(n, place, &left)
			}
			n.ruled = found[id]
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

func (g *Generator) newRuled(n *node, place []string, left *int) *ruled {
	around := g.reach(place)
	if around == nil {
		return nil
	}
	r := &ruled{place: place}
	r.object, _ = g.try(around, place, nil)
	for try := 0; try < tries && *left > 0; try++ {
		*left--
		r.known = &choice{}
		next := random(0, try, []float64{1, 0.9, 0.75, 0.5}[try%4])
		v, err := newMaker(next).value(n, r.known, nil)
		if err == nil && g.acceptsAt(r, v) {
			return r
		}
	}
	return nil
}

func (g *Generator) acceptsAt(r *ruled, value any) bool {
	with := func(any, string) any { return value }
	object, ok := replace(runtime.DeepCopyJSON(r.object), g.schema, r.place, "", with)
	return ok && g.valid(object.(map[string]any))
}

// repair changes choices, inner ones first, until the values at places with CEL rules are accepted.
func (g *Generator) repair(c *choice, place []string) {
	m := newMaker(nil)
	left := maxTries
	m.repair = func(n *node, c *choice, value any) any {
		if left--; left <= 0 || g.acceptsAt(n.ruled, value) {
			return value
		}
		at := n.ruled.known.clone()
		s := &search{left: maxTries / 4, try: func(c *choice) (any, bool) {
			v, err := newMaker(nil).value(n, c, nil)
			return v, err == nil && g.acceptsAt(n.ruled, v)
		}}
		s.toward(at, c)
		if s.value == nil {
			s.value, _ = s.try(at)
		}
		c.set(at)
		return s.value
	}
	m.value(g.root, c, place) // an object that cannot be made is repaired in part
}

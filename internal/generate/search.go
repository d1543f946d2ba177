package generate

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// ruled is a part of the schema that has CEL rules. valid reports only that some rule refuses an
// object; the rules of a part can be asked about its value alone.
type ruled struct {
	rules *cel.Validator
	known *choice // of a value that is accepted
}

// findRuled finds the parts that have CEL rules, below the root.
func (g *Generator) findRuled() {
	found := map[string]*ruled{}
	var walk func(n *node)
	walk = func(n *node) {
		if n == nil || n.err != nil {
			return
		}
		if len(n.source.XValidations) > 0 && n != g.root {
			if _, ok := found[n.path]; !ok {
				found[n.path] = newRuled(n)
			}
			n.ruled = found[n.path]
		}
		for _, v := range append([]*node{n}, n.variants...) {
			for _, p := range v.properties {
				walk(p.node)
			}
			walk(v.entries)
			walk(v.items)
		}
	}
	walk(g.root)
}

// newRuled returns nil if it finds no value that is accepted.
func newRuled(n *node) *ruled {
	r := &ruled{rules: cel.NewValidator(n.source, false, celconfig.PerCallLimit)}
	for try := range tries {
		r.known = &choice{}
		next := random(0, try, []float64{1, 0.9, 0.75, 0.5}[try%4])
		v, err := newMaker(next).value(n, r.known)
		if err == nil && r.accepts(n, v) {
			return r
		}
	}
	return nil
}

func (r *ruled) accepts(n *node, value any) bool {
	value = withDefaults(value, n.source)
	errs, _ := r.rules.Validate(
		context.Background(), nil, n.source, value, nil, celconfig.RuntimeCELCostBudget)
	return len(errs) == 0
}

// repair changes choices, inner ones first, until the values of parts with CEL rules are accepted.
func (g *Generator) repair(c *choice) {
	m := newMaker(nil)
	left := maxTries
	m.repair = func(n *node, c *choice, value any) any {
		if left--; left <= 0 || n.ruled.accepts(n, value) {
			return value
		}
		at := n.ruled.known.clone()
		s := &search{left: maxTries / 4, try: func(c *choice) (any, bool) {
			v, err := newMaker(nil).value(n, c)
			return v, err == nil && n.ruled.accepts(n, v)
		}}
		s.toward(at, c)
		if s.value == nil {
			s.value, _ = s.try(at)
		}
		c.set(at)
		return s.value
	}
	m.value(g.root, c) // an object that cannot be made is repaired in part
}

// search changes the choices of an accepted value towards wanted ones, as far as the values that
// they make are accepted.
type search struct {
	try   func(c *choice) (any, bool)
	left  int // tries
	root  *choice
	value any // of the root; nil if nothing was accepted yet
}

// toward changes at, which makes an accepted value.
func (s *search) toward(at, want *choice) {
	s.root = at
	for before := -1; before != s.left && s.left > 0 && !at.same(want); {
		before = s.left
		if !s.part(at, want) {
			return
		}
	}
}

// accept makes a change of choices, and undoes it if the value is refused.
func (s *search) accept(at *choice, change func()) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	before := *at.clone()
	change()
	value, ok := s.try(s.root)
	if !ok {
		*at = before
		return false
	}
	s.value = value
	return true
}

// part changes one part: all of it, or else its own parts one by one. It reports whether anything
// was changed.
func (s *search) part(at, want *choice) bool {
	if s.left <= 0 || at.same(want) {
		return false
	}
	if s.accept(at, func() { at.set(want) }) {
		return true
	}
	draw := func(draw uint64) bool { return s.accept(at, func() { at.drawn, at.draw = true, draw }) }
	n := max(len(at.kids), len(want.kids))
	if n == 0 {
		// a draw between the two may be accepted
		for _, d := range []uint64{unit, 2 * unit, 3 * unit, 4 * unit, want.draw / 2, want.draw / 16} {
			between := at.draw < d && d < want.draw && d > named*unit || want.draw < d && d < at.draw
			if between && draw(d) {
				return true
			}
		}
		return false
	}
	changed := at.draw != want.draw && draw(want.draw)
	if at.draw == 0 && want.draw != 0 {
		return false // absent values have no parts
	}
	return s.parts(at, want, 0, n) || changed
}

// parts changes a range of parts: all at once, or else its halves.
func (s *search) parts(at, want *choice, from, to int) bool {
	if to-from == 1 {
		return s.part(at.kid(from), want.kid(from))
	}
	same := true
	for i := from; i < to; i++ {
		same = same && at.kid(i).same(want.kid(i))
	}
	if same || s.left <= 0 {
		return false
	}
	if s.accept(at, func() {
		for i := from; i < to; i++ {
			at.kid(i).set(want.kid(i))
		}
	}) {
		return true
	}
	middle := from + (to-from)/2
	first := s.parts(at, want, from, middle)
	return s.parts(at, want, middle, to) || first
}

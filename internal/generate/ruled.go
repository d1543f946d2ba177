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

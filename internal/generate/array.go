package generate

import (
	"errors"
	"fmt"
	"math"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crdkit/crdkit/internal/choices"
)

func (c *compiler) fillArray(n *node, s *structuralschema.Structural, f flat) error {
	n.mostOf = math.MaxInt32
	for _, v := range f {
		n.leastOf = max(n.leastOf, limit(v.MinItems, 0))
		n.mostOf = min(n.mostOf, limit(v.MaxItems, math.MaxInt32))
		n.unique = n.unique || v.UniqueItems
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		n.unique = true
	}
	if s.Items != nil {
		n.items = c.compile(n.path+"[*]", s.Items, f.items()...)
	} else {
		n.items = untyped(n.path+"[*]", s.XPreserveUnknownFields)
	}
	if s.XListType != nil && *s.XListType == "map" {
		for _, name := range s.XListMapKeys {
			i := slices.IndexFunc(n.items.properties, func(p property) bool { return p.name == name })
			if i >= 0 {
				n.keys = append(n.keys, i)
			}
		}
		items := *n.items
		items.nullable = false // an element without keys
		n.items = &items
	}
	if n.items.err != nil {
		if n.leastOf > 0 {
			return n.items.err
		}
		n.mostOf = 0
	}
	if n.leastOf > n.mostOf {
		return n.fault(fmt.Errorf("at least %d elements, and at most %d", n.leastOf, n.mostOf))
	}
	few := min(large, largest/2/max(1, n.items.size))
	n.sizes = c.edges.sizes(n.path, "minItems", "maxItems", n.leastOf, n.mostOf, few, usualSizes)
	n.size += min(n.leastOf, many) * n.items.size
	return n.tooLarge()
}

func (m *maker) array(n *node) ([]any, error) {
	out := []any{}
	others := elements{node: n, seen: map[string]bool{}}
	draw := m.plan.Length(m.Source, n.path, func() uint64 { return m.plan.draw(m.Source, n.path) })
	total := count(draw, n.leastOf, n.mostOf, m.affordable(draw, n.sizes, n.items))
	if draw >= named*unit {
		total = max(total, min(m.plan.Elements(n.path), n.mostOf))
	}
	for i := range total {
		var v any
		var err error
		m.Part(func() { v, err = m.element(n.items, i, total) })
		if n.unique && err == nil {
			v, err = others.distinct(m, v)
		}
		if err != nil {
			if len(out)+total-i-1 < n.leastOf {
				return nil, err
			}
			continue
		}
		out = append(out, v)
	}
	return out, nil
}

// affordable returns the sizes that fit into the budget, in ascending order, and now and then all,
// because in large lists, all but the first elements are small.
func (m *maker) affordable(draw uint64, sizes []int, of *node) []int {
	if of == nil || scatter(draw, 5)%8 == 0 {
		return sizes
	}
	i := slices.IndexFunc(sizes, func(size int) bool { return float64(size*min(of.size, 16)) > max(100, 8*m.budget) })
	if i < 0 {
		return sizes
	}
	return sizes[:i]
}

// element makes element i of a list or map. Only the first one follows the plan, and all but the
// first few are small.
func (m *maker) element(n *node, i, of int) (v any, err error) {
	defer func(p *Plan) { m.plan = p }(m.plan)
	if i > 0 {
		m.plan = nil
	}
	do := func() { m.within(m.budget/float64(min(of, dense)), func() { v, err = m.value(n) }) }
	if i < dense {
		do()
	} else {
		m.Least(do)
	}
	return v, err
}

// elements are those of a list that must differ.
type elements struct {
	*node // of the list
	seen  map[string]bool
	next  int // of the small values that replace elements which are there already
}

// distinct returns an element that differs from the others: the given one with other keys, or a
// small one.
func (e *elements) distinct(m *maker, v any) (_ any, err error) {
	for try := 0; err == nil && e.seen[e.key(v)]; try++ {
		if try > tries {
			return nil, e.fault(fmt.Errorf("no element is found that differs from %d others", len(e.seen)))
		}
		object, ok := v.(map[string]any)
		if !ok || e.keys == nil {
			m.with(always(bump(0, e.next)), func(m *maker) { v, err = m.value(e.items) })
		} else {
			for i, number := range e.keys {
				p := e.items.properties[number]
				draw := e.next >> (2 * i) // so that small keys are combined
				if draw >= named {
					draw = e.next*len(e.keys) + i
				}
				m.with(always(bump(0, draw)), func(m *maker) { object[p.name], err = m.value(p.node) })
			}
			if err == nil && !e.items.accepts(object) {
				err = e.fault(errors.New("no other key is accepted"))
			}
		}
		e.next++
	}
	if err == nil {
		e.seen[e.key(v)] = true
	}
	return v, err
}

// key returns the part of an element that must differ from those of other elements.
func (n *node) key(element any) string {
	object, ok := element.(map[string]any)
	if n.keys == nil || !ok {
		if n.defaults {
			element = withDefaults(element, n.source.Items)
		}
		return key(element)
	}
	keys := make([]any, 0, len(n.keys))
	for _, i := range n.keys {
		p := n.items.properties[i]
		v, found := object[p.name]
		if !found && p.absent != nil {
			v, found = p.absent, true
		}
		keys = append(keys, v, found)
	}
	return key(keys)
}

// always returns a source of one draw for a small value.
func always(v uint64) *choices.Source { return choices.Of(slices.Repeat([]uint64{v}, 64)) }

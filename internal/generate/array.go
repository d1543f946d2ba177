package generate

import (
	"fmt"
	"math"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

func (c *compiler) fillArray(n *node, s *structuralschema.Structural, f *flat) error {
	n.mostOf = math.MaxInt32
	for _, v := range f.all {
		n.leastOf = max(n.leastOf, limit(v.MinItems, 0))
		n.mostOf = min(n.mostOf, limit(v.MaxItems, math.MaxInt32))
		n.unique = n.unique || v.UniqueItems
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		n.unique = true
	}
	if s.Items != nil {
		n.items = c.compile(n.path+"[*]", s.Items, false, f.items()...)
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

func (m *maker) array(n *node, c *choice) ([]any, error) {
	out := []any{}
	seen := map[string]bool{}
	total := count(m.draw(c), n.leastOf, n.mostOf, n.sizes)
	for i := range total {
		var v any
		var err error
		m.part(func() { v, err = m.element(n.items, i, c.kid(i)) })
		if n.unique {
			for try := 1; err == nil && try <= tries && seen[n.key(v)]; try++ {
				v, err = m.another(n, c.kid(i), try+max(0, i-dense))
			}
			if err == nil && seen[n.key(v)] {
				if len(out) < n.leastOf {
					return nil, n.fault(fmt.Errorf("no element is found that differs from %d others", len(out)))
				}
				break
			}
		}
		if err != nil {
			if len(out)+total-i-1 < n.leastOf {
				return nil, err
			}
			continue
		}
		if n.unique {
			seen[n.key(v)] = true
		}
		out = append(out, v)
	}
	return out, nil
}

// element makes element i. All but the first few of a large list or map are small.
func (m *maker) element(n *node, i int, c *choice) (any, error) {
	if i >= dense {
		next := m.next
		m.next = nil
		defer func() { m.next = next }()
	}
	return m.value(n, c)
}

// key returns what must differ between elements.
func (n *node) key(element any) string {
	if n.defaults {
		element = withDefaults(element, n.source.Items)
	}
	object, ok := element.(map[string]any)
	if n.keys == nil || !ok {
		return key(element)
	}
	keys := make([]any, 0, len(n.keys))
	for _, i := range n.keys {
		v, found := object[n.items.properties[i].name]
		keys = append(keys, v, found)
	}
	return key(keys)
}

// another makes another element of the same choices. If it has keys, only they differ.
func (m *maker) another(n *node, c *choice, try int) (v any, err error) {
	c = c.clone()
	if n.keys == nil {
		m.with(random(c.draw, try, 0.5), func(m *maker) {
			change(n.items, c, try)
			v, err = m.value(n.items, c)
		})
		return v, err
	}
	inner := c
	if n.items.search || len(n.items.variants) > 0 {
		inner = c.kid(0)
	}
	i := n.keys[try%len(n.keys)]
	p := n.items.properties[i]
	if kid := inner.kid(i); !p.required && !some(kid.draw) {
		kid.drawn, kid.draw = true, unit
	}
	change(p.node, inner.kid(i).kid(0), try)
	m.with(nil, func(m *maker) { v, err = m.value(n.items, c) })
	return v, err
}

// change changes the choices of a value.
func change(n *node, c *choice, try int) {
	if n.nullable {
		c.draw = 0
		c = c.kid(0)
	}
	if n.search || len(n.variants) > 0 {
		if n.kind == kindObject || n.kind == kindArray {
			c.draw = scatter(c.draw, try)
		}
		c = c.kid(0)
	}
	switch n.kind {
	case kindObject, kindArray, kindAny:
		*c = choice{} // to be drawn again
	default:
		c.drawn, c.draw = true, bump(c.draw, try)
	}
}

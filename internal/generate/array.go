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
	if n.unique && n.items.err == nil {
		n.mostOf = min(n.mostOf, n.different())
	}
	if n.leastOf > n.mostOf {
		return n.fault(fmt.Errorf("at least %d elements, and at most %d", n.leastOf, n.mostOf))
	}
	n.sizes = c.edges.sizes(n.path, "minItems", "maxItems", n.leastOf, n.mostOf, min(large, largest/2/max(1, n.items.size)), usualSizes)
	n.size += min(n.leastOf, many) * n.items.size
	return n.tooLarge()
}

// different returns how many elements can differ from each other.
func (n *node) different() int {
	if n.keys == nil {
		return n.items.values()
	}
	d := 1
	for _, i := range n.keys {
		d = min(d*n.items.properties[i].values(), many)
	}
	return d
}

// values returns an upper bound of the number of values.
func (n *node) values() int {
	d := many
	switch {
	case n.constants != nil:
		d = len(n.constants)
	case n.kind == kindBoolean:
		d = 2
	case n.kind == kindInteger:
		d = n.numbers.whole()
	case n.kind == kindString && n.texts.most == 0:
		d = 1
	}
	if n.nullable {
		d++
	}
	return d
}

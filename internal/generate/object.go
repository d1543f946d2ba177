package generate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

func (c *compiler) fillObject(n *node, s *structuralschema.Structural, f *flat) error {
	n.required, n.mostOf = map[string]bool{}, math.MaxInt32
	for _, v := range f.all {
		for _, name := range v.Required {
			n.required[name] = true
		}
		n.leastOf = max(n.leastOf, limit(v.MinProperties, 0))
		n.mostOf = min(n.mostOf, limit(v.MaxProperties, math.MaxInt32))
	}
	n.unknown = s.XPreserveUnknownFields
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if s.XEmbeddedResource && isMeta(name) {
			continue
		}
		demands := f.property(name)
		n.properties = append(n.properties, property{
			name: name, required: n.required[name] || !validDefault(&p, demands), absent: p.Default.Object,
			node: c.compile(below(n.path, name), &p, false, demands...),
		})
	}
	if s.XEmbeddedResource {
		n.properties = append(n.properties, c.embedded(n.path, s, f)...)
	}
	if a := s.AdditionalProperties; a != nil {
		switch {
		case a.Structural != nil:
			n.entries = c.compile(n.path+"[*]", a.Structural, false)
		case a.Bool:
			n.entries = untyped(n.path+"[*]", n.unknown)
		}
		if n.entries != nil && n.entries.err != nil && n.leastOf <= len(n.properties) {
			n.entries = nil
		}
	}
	return n.measure(c.edges)
}

// validDefault reports whether an absent field is accepted after defaulting.
func validDefault(s *structuralschema.Structural, demands []demand) bool {
	if s.Default.Object == nil {
		return true
	}
	value := withDefaults(s.Default.Object, s)
	return newValidator(s).Validate(value).IsValid() && newValidator(valuesOnly(s, demands)).Validate(value).IsValid()
}

// measure sets the sizes of an object, or returns an error if there is none. All properties must be
// known.
func (n *node) measure(e *edges) error {
	n.size = 1
	must := 0
	for _, p := range n.properties {
		if p.required {
			must++
			if p.err != nil {
				return p.err
			}
			n.size += p.size
		}
	}
	for name := range n.required {
		if !slices.ContainsFunc(n.properties, func(p property) bool { return p.name == name }) {
			must++
			if n.entries == nil && !n.unknown {
				return n.fault(fmt.Errorf("%s is required, but not a property", name))
			}
			n.size++
		}
	}
	possible, stay := must, must
	for _, p := range n.properties {
		if !p.required && p.err == nil {
			possible++
		}
		if !p.required && p.absent != nil {
			stay++
		}
	}
	switch {
	case stay > n.mostOf:
		return n.fault(fmt.Errorf("at most %d properties, but %d are required or have a default", n.mostOf, stay))
	case n.leastOf > n.mostOf:
		return n.fault(fmt.Errorf("at least %d properties, and at most %d", n.leastOf, n.mostOf))
	case n.leastOf > possible && n.entries == nil && !n.unknown:
		return n.fault(fmt.Errorf("at least %d properties, but only %d are possible", n.leastOf, possible))
	case n.leastOf > possible && n.entries != nil && n.entries.err != nil:
		return n.entries.err
	}
	each := 1
	if n.entries != nil {
		each = n.entries.size
	}
	n.sizes = e.sizes(n.path, "minProperties", "maxProperties", n.leastOf, n.mostOf, min(large, largest/2/max(1, each)), usualSizes)
	n.size += max(0, min(n.leastOf, many)-must) * each
	return n.tooLarge()
}

package generate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

func (c *compiler) fillObject(n *node, s *structuralschema.Structural, f flat) error {
	required := map[string]bool{}
	n.mostOf = math.MaxInt32
	for _, v := range f {
		for _, name := range v.Required {
			required[name] = true
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
			name: name, required: required[name] || !validDefault(&p, demands), absent: p.Default.Object,
			node: c.compile(below(n.path, name), &p, demands...),
		})
	}
	if s.XEmbeddedResource {
		n.properties = append(n.properties, c.embedded(n.path, s, f)...)
	}
	if a := s.AdditionalProperties; a != nil {
		switch {
		case a.Structural != nil:
			n.entries = c.compile(n.path+"[*]", a.Structural)
		case a.Bool:
			n.entries = untyped(n.path+"[*]", n.unknown)
		}
		if n.entries != nil && n.entries.err != nil && n.leastOf <= len(n.properties) {
			n.entries = nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(required)) {
		switch {
		case n.declares(name):
		case n.entries != nil:
			n.properties = append(n.properties, property{name: name, required: true, node: n.entries})
		case n.unknown:
			n.properties = append(n.properties, property{name: name, required: true, node: untyped(below(n.path, name), true)})
		default:
			return n.fault(fmt.Errorf("%s is required, but not a property", name))
		}
	}
	return n.measure(c.edges)
}

func (n *node) declares(name string) bool {
	_, ok := n.property(name)
	return ok
}

// validDefault reports whether an absent field is accepted after defaulting.
func validDefault(s *structuralschema.Structural, demands []nestedValidation) bool {
	if s.Default.Object == nil {
		return true
	}
	value := withDefaults(s.Default.Object, s)
	return newValidator(demanding(s, demands...)).Validate(value).IsValid()
}

// measure sets the sizes of an object, or returns an error if no size fits. All properties must be
// known.
func (n *node) measure(e *edges) error {
	required, stay := 0, 0 // stay counts the fields after defaulting
	n.size = 1
	for _, p := range n.properties {
		if p.required && p.err != nil {
			return p.err
		}
		if p.required {
			required++
			n.size += p.size
		}
		if p.required || p.absent != nil {
			stay++
		}
	}
	switch {
	case stay > n.mostOf:
		return n.fault(fmt.Errorf("at most %d properties, but %d are required or have a default", n.mostOf, stay))
	case n.leastOf > n.mostOf:
		return n.fault(fmt.Errorf("at least %d properties, and at most %d", n.leastOf, n.mostOf))
	}
	each := 1
	if n.entries != nil {
		each = n.entries.size
	}
	few := min(large, largest/2/max(1, each))
	n.sizes = e.sizes(n.path, "minProperties", "maxProperties", n.leastOf, n.mostOf, few, usualSizes)
	n.size += max(0, min(n.leastOf, many)-required) * each
	return n.tooLarge()
}

// object makes an object: its properties, and then other fields.
func (m *maker) object(n *node) (map[string]any, error) {
	out := map[string]any{}
	total, optional := 0, 0 // fields after defaulting, and those that may be absent
	for _, p := range n.properties {
		if p.required || p.absent != nil {
			total++
		}
		if !p.required {
			optional++
		}
	}
	share, inside := Share(m.budget, optional, len(n.properties)-optional)
	if n.path == "" {
		share = usualShare
	}
	fits := func(p property) bool { return p.err == nil && (p.absent != nil || total < n.mostOf) }
	put := func(p property) (err error) {
		var v any
		if m.within(inside, func() { v, err = m.value(p.node) }); err != nil {
			return err
		}
		if out[p.name] = v; !p.required && p.absent == nil {
			total++
		}
		return nil
	}
	var absent []property
	for _, p := range n.properties {
		var err error
		m.Part(func() {
			if p.required {
				err = put(p)
			} else if !m.plan.Some(m.Source, p.path, share) || !fits(p) || put(p) != nil {
				absent = append(absent, p)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, p := range absent {
		if len(out) < n.leastOf && fits(p) {
			m.Part(func() { _ = put(p) }) // or the next one
		}
	}
	if n.entries != nil || n.unknown {
		if err := m.undeclared(n, out, total); err != nil {
			return nil, err
		}
	}
	if len(out) < n.leastOf {
		return nil, n.fault(fmt.Errorf("only %d of %d properties are found", len(out), n.leastOf))
	}
	return out, nil
}

// undeclared adds fields that are not properties.
func (m *maker) undeclared(n *node, out map[string]any, total int) error {
	least, most := max(0, n.leastOf-len(out)), n.mostOf-total
	if n.entries != nil && n.entries.err != nil {
		most = 0
	}
	planned, draw := false, uint64(0)
	if n.entries == nil {
		draw = m.Uint64()
	} else {
		planned, draw = m.plan.Has(n.entries.path), m.plan.draw(m.Source, n.entries.path)
	}
	var sizes []int
	for _, size := range m.affordable(draw, n.sizes, n.entries) {
		if extra := size - total; n.entries != nil && extra >= least {
			sizes = append(sizes, extra)
		}
	}
	extra := count(draw, least, max(least, most), sizes)
	if planned && draw >= named*unit {
		extra = max(extra, min(1, most))
	}
	for i := range extra {
		var err error
		m.Part(func() {
			draw := bump(0, i)
			if i < dense {
				draw = m.Uint64()
			}
			name := n.fieldName(draw, out)
			if name == "" {
				return
			}
			var v any
			if n.entries == nil {
				v = m.anything(2)
			} else if v, err = m.element(n.entries, i, extra); err != nil {
				return
			}
			out[name] = v
		})
		if err != nil && i < least {
			return err
		}
	}
	return nil
}

// fieldName returns a name that no field has, or none.
func (n *node) fieldName(draw uint64, taken map[string]any) string {
	for try := range tries {
		d := bump(draw, try)
		name := "x" + Word(d/unit)
		if n.entries != nil && d/unit >= named {
			switch scatter(d, 1) % 8 {
			case 0:
				name = "example.com/" + name
			case 1:
				name = phrase(rand.New(rand.NewPCG(d, 0)), 1+int(d/unit%8))
			case 2:
				name = strconv.Itoa(int(d / unit % 1000))
			}
		}
		if _, ok := taken[name]; !ok && !isMeta(name) && !n.declares(name) {
			return name
		}
	}
	return ""
}

package generate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Bound is a bound of value validations.
type Bound struct {
	Name  string // such as maxLength
	Value float64
	Open  bool // the value itself is not allowed
	lower bool
}

// Bounds returns the bounds of value validations, but for those of what is nested, and for a
// least size of zero.
func Bounds(v *structuralschema.ValueValidation) (all []Bound) {
	if v == nil {
		return nil
	}
	add := func(name string, value *float64, open, lower bool) {
		if value != nil {
			all = append(all, Bound{name, *value, open, lower})
		}
	}
	float := func(n *int64) *float64 {
		if n == nil {
			return nil
		}
		return new(float64(*n))
	}
	add("maximum", v.Maximum, v.ExclusiveMaximum, false)
	add("minimum", v.Minimum, v.ExclusiveMinimum, true)
	add("maxLength", float(v.MaxLength), false, false)
	add("maxItems", float(v.MaxItems), false, false)
	add("maxProperties", float(v.MaxProperties), false, false)
	add("minLength", float(v.MinLength), false, true)
	add("minItems", float(v.MinItems), false, true)
	add("minProperties", float(v.MinProperties), false, true)
	return slices.DeleteFunc(all, func(b Bound) bool { return b.lower && b.Name != "minimum" && b.Value <= 0 })
}

// Stricter reports whether values between the two bounds, which have one name, are allowed
// by the other bound alone.
func (b Bound) Stricter(than Bound) bool {
	switch {
	case b.Value == than.Value:
		return b.Open && !than.Open
	case b.lower:
		return b.Value > than.Value
	}
	return b.Value < than.Value
}

// Beyond narrows value validations to what is on the other side of the bound, and begins
// right there.
func (b Bound) Beyond(v *structuralschema.ValueValidation) {
	size := new(int64(b.Value) + 1)
	if b.lower {
		*size -= 2
	}
	switch b.Name {
	case "maximum":
		v.Minimum, v.ExclusiveMinimum = new(b.Value), !b.Open
	case "minimum":
		v.Maximum, v.ExclusiveMaximum = new(b.Value), !b.Open
	case "maxLength":
		v.MinLength = size
	case "maxItems":
		v.MinItems = size
	case "maxProperties":
		v.MinProperties = size
	case "minLength":
		v.MaxLength = size
	case "minItems":
		v.MaxItems = size
	case "minProperties":
		v.MaxProperties = size
	}
}

// edges are the bounds of several schemas: by the name of a field, and all of them. Values
// at a bound and next to it are where one schema accepts what another one does not.
type edges struct {
	named map[string][]Bound
	all   []Bound
}

func edgesOf(schemas []*structuralschema.Structural) *edges {
	e := &edges{named: map[string][]Bound{}}
	for _, s := range schemas {
		e.add("", s)
	}
	e.all = slices.Concat(slices.Collect(maps.Values(e.named))...)
	for name, all := range e.named {
		e.named[name] = distinct(all)
	}
	e.all = distinct(e.all)
	return e
}

// distinct sorts bounds.
func distinct(all []Bound) []Bound {
	slices.SortFunc(all, func(a, b Bound) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) })
	return slices.CompactFunc(all, func(a, b Bound) bool { return a.Name == b.Name && a.Value == b.Value })
}

func (e *edges) add(name string, s *structuralschema.Structural) {
	e.addValues(name, s.ValueValidation)
	for name, p := range s.Properties {
		e.add(name, &p)
	}
	if s.Items != nil {
		e.add(name, s.Items)
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		e.add(name, a.Structural)
	}
}

func (e *edges) addValues(name string, v *structuralschema.ValueValidation) {
	if v == nil {
		return
	}
	e.named[name] = append(e.named[name], Bounds(v)...)
	for _, n := range slices.Concat(v.AllOf, v.AnyOf, v.OneOf) {
		e.addNested(name, &n)
	}
	if v.Not != nil {
		e.addNested(name, v.Not)
	}
}

func (e *edges) addNested(name string, n *structuralschema.NestedValueValidation) {
	e.addValues(name, &n.ValueValidation)
	for name, p := range n.Properties {
		e.addNested(name, &p)
	}
	if n.Items != nil {
		e.addNested(name, n.Items)
	}
	if n.AdditionalProperties != nil {
		e.addNested(name, n.AdditionalProperties)
	}
}

// maxEdges bounds how many bounds of fields with other names are near to a value.
const maxEdges = 12

// near returns the values of bounds, and those next to them on the other side: of the bounds
// of fields that have the same name, or of all fields if none of those has an upper one: it
// may have another name in another version.
func (e *edges) near(path, lower, upper string) (values []float64, named bool) {
	if e == nil {
		return nil, false
	}
	other := func(b Bound) bool { return b.Name != lower && b.Name != upper }
	path = strings.ReplaceAll(path, "[*]", "")
	all, step := slices.DeleteFunc(slices.Clone(e.named[path[strings.LastIndex(path, ".")+1:]]), other), 1
	if named = slices.ContainsFunc(all, func(b Bound) bool { return b.Name == upper }); !named {
		all = slices.DeleteFunc(slices.Clone(e.all), other)
		step += len(all) / maxEdges
	}
	for i := 0; i < len(all); i += step {
		beyond := all[i].Value + 1
		if all[i].lower {
			beyond -= 2
		}
		values = append(values, all[i].Value, beyond)
	}
	return values, named
}

// sizes returns the sizes near to bounds, in ascending order, that are between two others
// and not large. If there is no upper bound for that name, there are some usual ones too.
func (e *edges) sizes(path, lower, upper string, least, most, large int, usual []int) []int {
	values, named := e.near(path, lower, upper)
	values = append(values, float64(most))
	for _, n := range usual {
		if !named {
			values = append(values, float64(n))
		}
	}
	var sizes []int
	for _, f := range values {
		if n := int(math.Min(f, math.MaxInt32)); n >= least && n <= most && n <= large {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// edge returns one of the sizes, the first for a fraction of zero, and how far the fraction
// is on the way to the next.
func edge(sizes []int, f float64) (size int, rest float64) {
	i, rest := math.Modf(f * float64(len(sizes)))
	return sizes[int(i)], rest
}

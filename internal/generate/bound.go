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

// Bounds returns the bounds of value validations, except for nested ones and for a least size of
// zero.
func Bounds(v *structuralschema.ValueValidation) (all []Bound) {
	if v == nil {
		return nil
	}
	add := func(name string, value *float64, open, lower bool) {
		if value != nil {
			all = append(all, Bound{name, *value, open, lower})
		}
	}
	add("maximum", v.Maximum, v.ExclusiveMaximum, false)
	add("minimum", v.Minimum, v.ExclusiveMinimum, true)
	sizes := sizesOf(v)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		lower := strings.HasPrefix(name, "min")
		if size := *sizes[name]; size != nil && (*size > 0 || !lower) {
			add(name, new(float64(*size)), false, lower)
		}
	}
	return all
}

// sizesOf returns the fields of value validations that bound sizes, by name.
func sizesOf(v *valueValidation) map[string]**int64 {
	return map[string]**int64{
		"maxItems": &v.MaxItems, "maxLength": &v.MaxLength, "maxProperties": &v.MaxProperties,
		"minItems": &v.MinItems, "minLength": &v.MinLength, "minProperties": &v.MinProperties,
	}
}

// Stricter reports whether only the other bound, which has the same name, allows the values between
// the two.
func (b Bound) Stricter(than Bound) bool {
	switch {
	case b.Value == than.Value:
		return b.Open && !than.Open
	case b.lower:
		return b.Value > than.Value
	}
	return b.Value < than.Value
}

// next returns the first integer on the other side of a bound.
func (b Bound) next() float64 {
	if b.lower {
		return b.Value - 1
	}
	return b.Value + 1
}

// Beyond narrows value validations to the other side of the bound, from the first value there.
func (b Bound) Beyond(v *structuralschema.ValueValidation) {
	switch b.Name {
	case "maximum":
		v.Minimum, v.ExclusiveMinimum = new(b.Value), !b.Open
	case "minimum":
		v.Maximum, v.ExclusiveMaximum = new(b.Value), !b.Open
	default:
		opposite := strings.NewReplacer("max", "min", "min", "max").Replace(b.Name)
		*sizesOf(v)[opposite] = new(int64(b.next()))
	}
}

// edges are the bounds of several schemas, by the name of a field, and all together. At a bound and
// next to it are the values that one schema accepts and another one refuses.
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

// distinct sorts bounds, and drops duplicates.
func distinct(all []Bound) []Bound {
	slices.SortFunc(all, func(a, b Bound) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) })
	return slices.CompactFunc(all, func(a, b Bound) bool { return a.Name == b.Name && a.Value == b.Value })
}

func (e *edges) add(name string, s *structuralschema.Structural) {
	if v := s.ValueValidation; v != nil {
		e.addNested(name, &nestedValidation{ValueValidation: *v})
	}
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

func (e *edges) addNested(name string, v *nestedValidation) {
	if v == nil {
		return
	}
	e.named[name] = append(e.named[name], Bounds(&v.ValueValidation)...)
	for _, n := range slices.Concat(v.AllOf, v.AnyOf, v.OneOf) {
		e.addNested(name, &n)
	}
	e.addNested(name, v.Not)
	e.addNested(name, v.Items)
	for name, p := range v.Properties {
		e.addNested(name, &p)
	}
}

// maxEdges is the largest number of bounds of fields with other names that near returns.
const maxEdges = 12

// near returns the values at bounds and next to them on the other side. The bounds are those of
// fields with the same name, or of all fields if none of those has an upper bound, because another
// version may have another name for the field.
func (e *edges) near(path, lower, upper string) (values []float64, named bool) {
	other := func(b Bound) bool { return b.Name != lower && b.Name != upper }
	path = strings.ReplaceAll(path, "[*]", "")
	all, step := slices.DeleteFunc(slices.Clone(e.named[path[strings.LastIndex(path, ".")+1:]]), other), 1
	if named = slices.ContainsFunc(all, func(b Bound) bool { return b.Name == upper }); !named {
		all = slices.DeleteFunc(slices.Clone(e.all), other)
		step += len(all) / maxEdges
	}
	for i := 0; i < len(all); i += step {
		values = append(values, all[i].Value, all[i].next())
	}
	return values, named
}

// sizes returns sizes near bounds that are allowed and not large, in ascending order. Without an
// upper bound for that name, some usual sizes are among them.
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

// edge returns one of the sizes, the first for a fraction of zero, and the rest of the fraction.
func edge(sizes []int, f float64) (size int, rest float64) {
	i, rest := math.Modf(f * float64(len(sizes)))
	return sizes[int(i)], rest
}

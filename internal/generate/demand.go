package generate

import (
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

type (
	valueValidation  = structuralschema.ValueValidation
	nestedValidation = structuralschema.NestedValueValidation
)

// demand is a value validation of a parent that is about this value: it is nested in allOf, anyOf
// or oneOf.
type demand struct {
	*structuralschema.NestedValueValidation
	chosen bool // branches of its anyOf and oneOf are demands of their own
}

// bothTypes reports whether a group has the two types of an integer or string.
func bothTypes(group []nestedValidation) bool {
	return len(group) == 2 && group[0].ForbiddenGenerics.Type == "integer" && group[1].ForbiddenGenerics.Type == "string"
}

// valuesOnly returns the value validations of a schema, and the demands.
func valuesOnly(s *structuralschema.Structural, demands []demand) *structuralschema.Structural {
	out := &structuralschema.Structural{}
	out.Type, out.Nullable, out.XIntOrString = s.Type, s.Nullable, s.XIntOrString
	v := &valueValidation{}
	if s.ValueValidation != nil {
		*v = *s.ValueValidation
	}
	v.AllOf = slices.Clip(v.AllOf)
	for _, d := range demands {
		v.AllOf = append(v.AllOf, *d.NestedValueValidation)
	}
	out.ValueValidation = v
	return out
}

// flat is all that is demanded of a value.
type flat struct {
	demands []demand
	all     []*valueValidation // each must hold
	nested  []*nestedValidation
	groups  [][]nestedValidation // one of each must hold
	not     bool
	types   []string
}

func flatten(s *structuralschema.Structural, chosen bool, demands []demand) *flat {
	f := &flat{demands: demands}
	if s.ValueValidation != nil {
		f.add(s.ValueValidation, chosen)
	}
	for _, d := range demands {
		f.addNested(d.NestedValueValidation, d.chosen)
	}
	return f
}

func (f *flat) add(v *valueValidation, chosen bool) {
	f.all = append(f.all, v)
	if !chosen {
		for _, group := range [][]nestedValidation{v.OneOf, v.AnyOf} {
			if len(group) > 0 {
				f.groups = append(f.groups, group)
			}
		}
		f.not = f.not || v.Not != nil
	}
	for i := range v.AllOf {
		f.addNested(&v.AllOf[i], chosen)
	}
}

func (f *flat) addNested(v *nestedValidation, chosen bool) {
	f.add(&v.ValueValidation, chosen)
	f.nested = append(f.nested, v)
	if t := v.ForbiddenGenerics.Type; t != "" {
		f.types = append(f.types, t)
	}
}

func (f *flat) property(name string) (out []demand) {
	for _, v := range f.nested {
		if p, ok := v.Properties[name]; ok {
			out = append(out, demand{NestedValueValidation: &p})
		}
	}
	return out
}

func (f *flat) items() (out []demand) {
	for _, v := range f.nested {
		if v.Items != nil {
			out = append(out, demand{NestedValueValidation: v.Items})
		}
	}
	return out
}

func (f *flat) requires(name string) bool {
	return slices.ContainsFunc(f.all, func(v *valueValidation) bool { return slices.Contains(v.Required, name) })
}

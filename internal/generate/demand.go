package generate

import (
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// demand is a nested value validation that values must obey beside those of the schema.
type demand struct {
	*structuralschema.NestedValueValidation
	chosen bool // of its anyOf and oneOf, branches are demanded too
}

// bothTypes says whether branches say of an integer or string that it is one.
func bothTypes(group []structuralschema.NestedValueValidation) bool {
	return len(group) == 2 && group[0].ForbiddenGenerics.Type == "integer" && group[1].ForbiddenGenerics.Type == "string"
}

// valuesOnly is a schema without its structure.
func valuesOnly(s *structuralschema.Structural, demands []demand) *structuralschema.Structural {
	out := &structuralschema.Structural{}
	out.Type, out.Nullable, out.XIntOrString = s.Type, s.Nullable, s.XIntOrString
	v := &structuralschema.ValueValidation{}
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

// hasValues says whether value validations say anything.
func hasValues(all []*structuralschema.ValueValidation) bool {
	return slices.ContainsFunc(all, func(v *structuralschema.ValueValidation) bool {
		return !reflect.DeepEqual(*v, structuralschema.ValueValidation{AllOf: v.AllOf})
	})
}

// flat is what all the demands on a value come to.
type flat struct {
	demands []demand
	all     []*structuralschema.ValueValidation // each must hold
	nested  []*structuralschema.NestedValueValidation
	groups  [][]structuralschema.NestedValueValidation // one of each must hold
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

func (f *flat) add(v *structuralschema.ValueValidation, chosen bool) {
	f.all = append(f.all, v)
	if !chosen {
		for _, group := range [][]structuralschema.NestedValueValidation{v.OneOf, v.AnyOf} {
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

func (f *flat) addNested(v *structuralschema.NestedValueValidation, chosen bool) {
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
		} else if v.AdditionalProperties != nil {
			out = append(out, demand{NestedValueValidation: v.AdditionalProperties})
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

func (f *flat) entries() (out []demand) {
	for _, v := range f.nested {
		if v.AdditionalProperties != nil {
			out = append(out, demand{NestedValueValidation: v.AdditionalProperties})
		}
	}
	return out
}

// undeclared says whether something is demanded of fields that are no properties.
func (f *flat) undeclared(s *structuralschema.Structural) bool {
	for _, v := range f.nested {
		if v.AdditionalProperties != nil && s.AdditionalProperties == nil && s.XPreserveUnknownFields {
			return true
		}
		for name := range v.Properties {
			if _, ok := s.Properties[name]; !ok {
				return true
			}
		}
	}
	return false
}

func (f *flat) requires(name string) bool {
	return slices.ContainsFunc(f.all, func(v *structuralschema.ValueValidation) bool { return slices.Contains(v.Required, name) })
}

package generate

import (
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

type (
	valueValidation  = structuralschema.ValueValidation
	nestedValidation = structuralschema.NestedValueValidation
)

// demanding returns a schema that also demands what the value validations around it demand of its
// values.
func demanding(s *structuralschema.Structural, more ...nestedValidation) *structuralschema.Structural {
	out, v := *s, valueValidation{}
	if s.ValueValidation != nil {
		v = *s.ValueValidation
	}
	v.AllOf = append(slices.Clip(v.AllOf), more...)
	out.ValueValidation = &v
	return &out
}

// valuesOnly returns a schema with the value validations of another one.
func valuesOnly(s *structuralschema.Structural) *structuralschema.Structural {
	out := &structuralschema.Structural{ValueValidation: s.ValueValidation}
	out.Type, out.Nullable, out.XIntOrString = s.Type, s.Nullable, s.XIntOrString
	return out
}

// flat are value validations that must all hold: those of a schema, and the ones in their allOf.
type flat []nestedValidation

func flatten(s *structuralschema.Structural) flat {
	if s.ValueValidation == nil {
		return nil
	}
	return flat{}.add(nestedValidation{ValueValidation: *s.ValueValidation})
}

func (f flat) add(v nestedValidation) flat {
	all := v.AllOf
	v.AllOf = nil
	f = append(f, v)
	for _, v := range all {
		f = f.add(v)
	}
	return f
}

// groups returns the anyOf and oneOf: one branch of each must hold.
func (f flat) groups(intOrString bool) (groups [][]nestedValidation) {
	for _, v := range f {
		for _, group := range [][]nestedValidation{v.OneOf, v.AnyOf} {
			if len(group) > 0 && !(intOrString && bothTypes(group)) {
				groups = append(groups, group)
			}
		}
	}
	return groups
}

// bothTypes reports whether a group has the two types of an integer or string.
func bothTypes(group []nestedValidation) bool {
	return len(group) == 2 && group[0].ForbiddenGenerics.Type == "integer" && group[1].ForbiddenGenerics.Type == "string"
}

// choose returns a schema with branches in place of anyOf and oneOf, and without not.
func (f flat) choose(s *structuralschema.Structural, branches []nestedValidation) *structuralschema.Structural {
	f = slices.Clone(f)
	for i := range f {
		f[i].AnyOf, f[i].OneOf, f[i].Not = nil, nil, nil
	}
	out := *s
	out.ValueValidation = &f[0].ValueValidation
	return demanding(&out, append(f[1:], branches...)...)
}

func (f flat) property(name string) (out []nestedValidation) {
	for _, v := range f {
		if p, ok := v.Properties[name]; ok {
			out = append(out, p)
		}
	}
	return out
}

func (f flat) items() (out []nestedValidation) {
	for _, v := range f {
		if v.Items != nil {
			out = append(out, *v.Items)
		}
	}
	return out
}

func (f flat) has(condition func(v *nestedValidation) bool) bool {
	return slices.ContainsFunc(f, func(v nestedValidation) bool { return condition(&v) })
}

package breaking

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// narrow changes a schema so that its objects are likely to show a change: each has something at a place, and there
// what change wants. It reports whether the schema leads there.
func narrow(s *structuralschema.Structural, steps []string, change func(*structuralschema.Structural)) bool {
	s.Nullable = s.Nullable && len(steps) == 0 && change == nil
	if len(steps) == 0 {
		if change != nil {
			change(s)
		}
		return true
	}
	step, rest := steps[0], steps[1:]
	switch values := undeclared(s); {
	case step == anyItem:
		atLeast(&validationOf(s).MinItems, 1)
		s.Items = itemsOf(s)
		return narrow(s.Items, rest, change)
	case step == anyValue:
		nonempty(s)
		s.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: values}
		return values != nil && narrow(values, rest, change)
	}
	at := propertyOf(s, step).DeepCopy() // of other fields, too
	if at == nil || !narrow(at, rest, change) {
		return false
	}
	if s.Properties == nil {
		s.Properties = map[string]structuralschema.Structural{}
	}
	for _, p := range s.Properties { // the discriminator of a union has the name of the field that is there
		if v := p.ValueValidation; v != nil {
			named := func(value structuralschema.JSON) bool { return strings.EqualFold(fmt.Sprint(value.Object), step) }
			if i := slices.IndexFunc(v.Enum, named); i >= 0 {
				v.Enum[0], v.Enum[i] = v.Enum[i], v.Enum[0]
			}
		}
	}
	s.Properties[step] = *at
	if v := validationOf(s); !slices.Contains(v.Required, step) {
		v.Required = append(v.Required, step)
	}
	return true
}

// validationOf returns the value validation of a schema, to be changed.
func validationOf(s *structuralschema.Structural) *structuralschema.ValueValidation {
	if s.ValueValidation == nil {
		s.ValueValidation = &structuralschema.ValueValidation{}
	}
	return s.ValueValidation
}

func atLeast(bound **int64, n int64) {
	if *bound == nil || **bound < n {
		*bound = new(n)
	}
}

// nonempty makes objects have a field.
func nonempty(s *structuralschema.Structural) { atLeast(&validationOf(s).MinProperties, 1) }

// without takes a field away from objects.
func without(name string) func(*structuralschema.Structural) {
	return func(s *structuralschema.Structural) {
		s.Properties = maps.Clone(s.Properties)
		delete(s.Properties, name)
		if v := s.ValueValidation; v != nil {
			v.Required = slices.DeleteFunc(v.Required, func(r string) bool { return r == name })
		}
	}
}

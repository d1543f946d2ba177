package breaking

import (
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// To prove a change, objects are made of the old schema. Only a part of it is taken, so
// that they are small, and it is narrowed, so that they are likely to show the change.

// portion is the choice of the fields of a schema that are taken, beside those that are required and
// those on the way to a place.
type portion struct {
	whole  bool                   // all fields of the place itself
	wanted func(name string) bool // and fields of that name, anywhere
}

// part copies a part of a schema, with the place that steps lead to.
func (want portion) part(s *structuralschema.Structural, steps []string) *structuralschema.Structural {
	return want.copy(s, steps, true)
}

// copy is part, for a schema that is on the way to the place, or is not.
func (want portion) copy(s *structuralschema.Structural, steps []string, onWay bool) *structuralschema.Structural {
	step, rest := "", []string(nil)
	if onWay && len(steps) > 0 {
		step, rest = steps[0], steps[1:]
	}
	child := func(name string, s *structuralschema.Structural) *structuralschema.Structural {
		return want.copy(s, rest, step != "" && name == step)
	}
	out := *s
	out.ValueValidation = s.ValueValidation.DeepCopy()
	if s.Items != nil || step == anyItem {
		out.Items = child(anyItem, itemsOf(s))
	}
	hasValues := s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil
	if values := undeclared(s); values != nil && (hasValues || step == anyValue) {
		out.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: child(anyValue, values)}
	}
	needed := map[string]bool{step: true}
	all := needs(validationOrNone(s.ValueValidation), needed) || want.whole && onWay && len(steps) == 0
	out.Properties = map[string]structuralschema.Structural{}
	for name, p := range s.Properties {
		if all || needed[name] || want.wanted(name) {
			out.Properties[name] = *child(name, &p)
		}
	}
	if _, declared := out.Properties[step]; !declared && step != "" && step != anyItem && step != anyValue {
		if p := propertyOf(s, step); p != nil {
			out.Properties[step] = *child(step, p)
		}
	}
	return &out
}

// needs collects the fields that a validation mentions, and reports whether it is about the
// number of fields.
func needs(v *structuralschema.ValueValidation, names map[string]bool) (all bool) {
	for _, name := range v.Required {
		names[name] = true
	}
	all = v.MinProperties != nil
	nested := slices.Concat(v.AllOf, v.AnyOf, v.OneOf)
	if v.Not != nil {
		nested = append(nested, *v.Not)
	}
	for _, n := range nested {
		for name := range n.Properties {
			names[name] = true
		}
		all = needs(&n.ValueValidation, names) || all
	}
	return all
}

// rulesOf returns the text of all CEL rules of a schema, with their paths and the expressions of
// their messages.
func rulesOf(s *structuralschema.Structural) string {
	var rules strings.Builder
	var collect func(s *structuralschema.Structural)
	collect = func(s *structuralschema.Structural) {
		for _, rule := range s.XValidations {
			for _, text := range []string{rule.Rule, rule.MessageExpression, rule.FieldPath} {
				rules.WriteString(text + "\n")
			}
		}
		for _, p := range s.Properties {
			collect(&p)
		}
		if s.Items != nil {
			collect(s.Items)
		}
		if a := s.AdditionalProperties; a != nil && a.Structural != nil {
			collect(a.Structural)
		}
	}
	collect(s)
	return rules.String()
}

// narrow changes a schema so that each object has something at a place, and there what
// change wants. It reports whether the schema leads there.
func narrow(s *structuralschema.Structural, steps []string, change func(*structuralschema.Structural)) bool {
	s.Nullable = s.Nullable && len(steps) == 0 && change == nil
	if len(steps) == 0 {
		if change != nil {
			change(s)
		}
		return true
	}
	switch name := steps[0]; {
	case name == anyItem:
		atLeast(&validationOf(s).MinItems, 1)
		return s.Items != nil && narrow(s.Items, steps[1:], change)
	case name == anyValue:
		nonempty(s)
		return s.AdditionalProperties != nil && narrow(s.AdditionalProperties.Structural, steps[1:], change)
	}
	p, ok := s.Properties[steps[0]]
	if !ok || !narrow(&p, steps[1:], change) {
		return false
	}
	s.Properties[steps[0]] = p
	if v := validationOf(s); !slices.Contains(v.Required, steps[0]) {
		v.Required = append(v.Required, steps[0])
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

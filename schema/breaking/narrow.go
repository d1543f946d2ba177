package breaking

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// To prove a change, objects are made of the old schema. Only a part of it is taken, so
// that they are small, and it is narrowed, so that they are likely to show the change.

// portion is the choice of the fields of a schema that are taken, beside those that are required and
// those on the way to a place.
type portion struct {
	whole bool // all fields of the place itself
	// rules has the CEL rules, one a line. Strings are tried that they compare fields with.
	rules string
}

// part copies a part of a schema, with the place that steps lead to.
func (want portion) part(s *structuralschema.Structural, steps []string) *structuralschema.Structural {
	step, rest := "", []string(nil)
	if len(steps) > 0 {
		step, rest = steps[0], steps[1:]
	}
	child := func(name string, s *structuralschema.Structural) *structuralschema.Structural {
		if step != "" && name == step {
			return want.part(s, rest)
		}
		return portion{rules: want.rules}.part(s, nil)
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
	all := needs(validationOrNone(s.ValueValidation), needed) || want.whole && len(steps) == 0
	out.Properties = map[string]structuralschema.Structural{}
	for name, p := range s.Properties {
		if all || needed[name] {
			made := child(name, &p)
			if values := want.literals(name, step); p.Type == "string" && len(values) > 0 && !(name == step && len(rest) == 0) {
				v := validationOf(made)
				v.Enum = preferred(values, v.Enum)
			}
			out.Properties[name] = *made
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
// their messages, one a line, always in the same order.
func rulesOf(s *structuralschema.Structural) string {
	var rules strings.Builder
	var collect func(s *structuralschema.Structural)
	collect = func(s *structuralschema.Structural) {
		for _, rule := range s.XValidations {
			for _, text := range []string{rule.Rule, rule.MessageExpression, rule.FieldPath} {
				rules.WriteString(strings.ReplaceAll(text, "\n", " ") + "\n")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
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

// These find comparisons of a field in CEL rules, and the strings in them.
var (
	compared = regexp.MustCompile(`\.(\w+)\s*(?:==|!=|in)\s*(\[[^\]]*\]|'[^']*'|"[^"]*")`)
	quoted   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// literals returns the strings that rules compare a field with. First come those of rules that
// mention the next field on the way, too: a type often decides which other field is there.
func (want portion) literals(name, step string) (values []structuralschema.JSON) {
	var near, far []string
	for line := range strings.Lines(want.rules) {
		if step != "" && strings.Contains(line, "."+inRule(step)) {
			near = append(near, line)
		} else {
			far = append(far, line)
		}
	}
	for _, match := range compared.FindAllStringSubmatch(strings.Join(append(near, far...), ""), -1) {
		for _, text := range quoted.FindAllString(match[2], -1) {
			value := structuralschema.JSON{Object: text[1 : len(text)-1]}
			if match[1] == inRule(name) && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
	}
	return values
}

// preferred returns the values of an enum in another order. Without an enum, it returns the values
// and one that no rule knows.
func preferred(values, enum []structuralschema.JSON) []structuralschema.JSON {
	if len(enum) == 0 {
		return append(values, structuralschema.JSON{Object: "x"})
	}
	rank := func(v structuralschema.JSON) int {
		if i := slices.Index(values, v); i >= 0 {
			return i
		}
		return len(values)
	}
	return slices.SortedStableFunc(slices.Values(enum), func(a, b structuralschema.JSON) int { return rank(a) - rank(b) })
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

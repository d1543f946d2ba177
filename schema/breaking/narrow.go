package breaking

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

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
	var lines []string
	(&structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		for _, rule := range s.XValidations {
			for _, text := range []string{rule.Rule, rule.MessageExpression, rule.FieldPath} {
				lines = append(lines, strings.ReplaceAll(text, "\n", " ")+"\n")
			}
		}
		return false
	}}).Visit(s)
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// These find comparisons of a field in CEL rules, and the strings in them.
var (
	compared = regexp.MustCompile(`\.(\w+)\s*(?:==|!=|in)\s*(\[[^\]]*\]|'[^']*'|"[^"]*")`)
	quoted   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

// literals returns the strings that rules compare a field with. First come those of rules that
// mention the next field on the way, too: a type often decides which other field is there.
func literals(rules, name, step string) (values []structuralschema.JSON) {
	var near, far []string
	for line := range strings.Lines(rules) {
		if strings.Contains(line, "."+inRule(step)) {
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

// narrow changes a schema so that its objects are likely to show a change: each has something at a place, there
// what change wants, and in strings beside the way to it what rules compare them with. It reports whether the
// schema leads there.
func narrow(s *structuralschema.Structural, steps []string, change func(*structuralschema.Structural), rules string) bool {
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
		return narrow(s.Items, rest, change, rules)
	case step == anyValue:
		nonempty(s)
		s.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: values}
		return values != nil && narrow(values, rest, change, rules)
	}
	at := propertyOf(s, step).DeepCopy() // of other fields, too
	if at == nil || !narrow(at, rest, change, rules) {
		return false
	}
	if s.Properties == nil {
		s.Properties = map[string]structuralschema.Structural{}
	}
	for name, p := range s.Properties {
		if values := literals(rules, name, step); p.Type == "string" && len(values) > 0 {
			v := validationOf(&p)
			v.Enum = preferred(values, v.Enum)
			s.Properties[name] = p
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

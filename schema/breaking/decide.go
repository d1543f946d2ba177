package breaking

import (
	"context"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/ptr"
)

// Some constraints are decided without a search: where the old schema allows few values, by these
// values, and for patterns and lengths of strings, by the strings that patterns match.

// maxValues is up to how many values of a schema are tried one by one.
const maxValues = 100

// decide drops the changes of constraints at a place that refuse nothing. For the others, it finds
// values that they refuse. The changes begin at a place in the list.
func (c *comparison) decide(begin int, was, is *structuralschema.Structural) {
	values, finite := valuesOf(was)
	v := validationOrNone(was.ValueValidation)
	c.changes = append(c.changes[:begin], slices.DeleteFunc(c.changes[begin:], func(added *change) (harmless bool) {
		switch {
		case added.child != "" || added.only != nil || !added.creates || added.updates:
			return false // it is not about a value alone
		case finite:
			refused := slices.DeleteFunc(slices.Clone(values), func(value any) bool { return !added.refuses(is, value) })
			added.narrow, added.put = nil, func(any) []any { return refused }
			return len(refused) == 0
		case added.strings == nil || was.Type != "string" && !was.XIntOrString:
			return false
		}
		refused, decided := beyond(texts{v.Pattern, ptr.Deref(v.MinLength, -1), ptr.Deref(v.MaxLength, -1)}, *added.strings)
		if len(refused) == 0 {
			return decided
		}
		// The format or a rule may refuse these strings, but not the value that is there.
		added.put = func(value any) []any { return append(slices.Clip(refused), value) }
		return false
	})...)
}

// valuesOf returns the values that a schema allows, if they are few.
func valuesOf(s *structuralschema.Structural) (values []any, finite bool) {
	v := validationOrNone(s.ValueValidation)
	enum := v.Enum
	for _, all := range v.AllOf {
		enum = append(slices.Clip(enum), all.Enum...)
	}
	switch low, high := ptr.Deref(v.Minimum, math.Inf(-1)), ptr.Deref(v.Maximum, math.Inf(1)); {
	case len(enum) > 0:
		for _, value := range enum {
			values = append(values, value.Object)
		}
	case s.Type == "boolean":
		values = []any{true, false}
	case s.Type == "integer" && high-low < maxValues:
		for n := math.Ceil(low); n <= high; n++ {
			values = append(values, int64(n))
		}
	default:
		return nil, false
	}
	if s.Nullable {
		values = append(values, nil)
	}
	return slices.DeleteFunc(values, func(value any) bool { return len(errorsOf(s, value)) > 0 }), true
}

// errorsOf returns the errors of a value, without those of rules.
func errorsOf(s *structuralschema.Structural, value any) field.ErrorList {
	return validation.ValidateCustomResource(nil, value, validation.NewSchemaValidatorFromOpenAPI(s.ToKubeOpenAPI()))
}

// refuses reports whether a new constraint refuses a value.
func (c *change) refuses(is *structuralschema.Structural, value any) bool {
	if c.rule == "" {
		return slices.ContainsFunc(errorsOf(is, value), func(err *field.Error) bool { return strings.Contains(err.Error(), c.says) })
	}
	alone := *is
	alone.XValidations = slices.DeleteFunc(slices.Clone(is.XValidations), func(rule apiextensionsv1.ValidationRule) bool { return strings.TrimSpace(rule.Rule) != c.rule })
	errs, _ := cel.NewValidator(&alone, false, celconfig.PerCallLimit).Validate(context.Background(), nil, &alone, value, nil, celconfig.RuntimeCELCostBudget)
	return len(errs) > 0
}

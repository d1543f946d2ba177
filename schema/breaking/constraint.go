package breaking

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/ptr"

	"github.com/crdkit/crdkit/internal/generate"
)

// constraints compares what values must be, beside their type.
func (c *comparison) constraints(was, is *structuralschema.Structural, steps []string) {
	before, now := validationOrNone(was.ValueValidation), validationOrNone(is.ValueValidation)
	c.required(was, is, steps)
	begin := len(c.changes)
	c.enum(before, now, steps)
	c.bounds(was, now, steps)
	matched := func(v structuralschema.NestedValueValidation) bool { return v.Pattern == now.Pattern }
	if now.Pattern != "" && now.Pattern != before.Pattern && !slices.ContainsFunc(before.AllOf, matched) {
		added := c.add(steps, replaced("pattern", before.Pattern, now.Pattern), "new and changed values that do not match it are refused")
		added.says, added.strings = "should match", &texts{now.Pattern, -1, -1}
	}
	if now.Format != "" && now.Format != before.Format && !widerFormat(was, is.Type, now.Format) {
		added := c.add(steps, replaced("format", before.Format, now.Format), "new and changed values of another format are refused")
		added.says = "must be of type"
		if is.Type == "integer" {
			added.put = func(value any) []any { return []any{int64(math.MaxInt32 + 1), int64(math.MinInt32 - 1), value} }
		}
	}
	c.compositions(was, now, steps)
	c.rules(was, is, steps)
	c.decide(begin, was, is)
}

func validationOrNone(v *structuralschema.ValueValidation) *structuralschema.ValueValidation {
	return cmp.Or(v, &structuralschema.ValueValidation{})
}

// requires reports whether a schema requires a field.
func requires(s *structuralschema.Structural, name string) bool {
	return slices.Contains(validationOrNone(s.ValueValidation).Required, name)
}

func (c *comparison) required(was, is *structuralschema.Structural, steps []string) {
	before, now := validationOrNone(was.ValueValidation), validationOrNone(is.ValueValidation)
	for _, name := range missing(now.Required, before.Required) {
		if p, ok := is.Properties[name]; ok && p.Default.Object != nil {
			continue // it is always there
		}
		added := c.add(below(steps, name), "it is now required", "new objects without it are refused, and updates that change what it is in")
		added.steps, added.child, added.says = slices.Clone(steps), name, "Required value"
		added.narrow = without(name)
		added.certain = propertyOf(was, name) == nil // no old object has it
	}
}

func (c *comparison) enum(before, now *structuralschema.ValueValidation, steps []string) {
	if len(now.Enum) == 0 {
		return
	}
	if len(before.Enum) == 0 {
		verb := " are"
		if len(now.Enum) == 1 {
			verb = " is"
		}
		c.add(steps, "only "+valueList(now.Enum)+verb+" allowed now", "new and changed values are refused if they are not one of them").says = "Unsupported value"
		return
	}
	for _, v := range missing(before.Enum, now.Enum) {
		removed := c.add(steps, "the value "+exact(v.Object)+" is removed", "it is refused in new objects, and in updates that set it")
		removed.says, removed.only = "Unsupported value", &v
		removed.narrow = func(s *structuralschema.Structural) {
			validationOf(s).Enum = []structuralschema.JSON{v}
		}
	}
}

// bounds compares minima and maxima with those that the old schema has, and those that it implies.
// Objects of a schema that begins where the new one ends show it.
func (c *comparison) bounds(was *structuralschema.Structural, now *structuralschema.ValueValidation, steps []string) {
	before, implied := validationOrNone(was.ValueValidation), withImplied(was)
	said, known := map[string]string{}, map[string]generate.Bound{}
	for _, b := range generate.Bounds(before) {
		said[b.Name] = boundText(b)
	}
	for _, v := range append([]structuralschema.NestedValueValidation{{ValueValidation: *implied}}, before.AllOf...) {
		for _, b := range generate.Bounds(&v.ValueValidation) {
			if old, ok := known[b.Name]; !ok || b.Stricter(old) {
				known[b.Name] = b
			}
		}
	}
	for _, b := range generate.Bounds(now) {
		old, bounded := known[b.Name]
		onlyEmpty := b.Name == "minLength" && b.Value == 1 // refuses ""
		if bounded && !b.Stricter(old) || onlyEmpty && len(errorsOf(was, "")) > 0 {
			continue
		}
		added := c.add(steps, becomes(b.Name, said[b.Name], boundText(b)), "new and changed values beyond it are refused")
		added.says = boundWords[b.Name]
		added.narrow = func(s *structuralschema.Structural) { b.Beyond(validationOf(s)) }
		switch length := int64(b.Value); {
		case b.Name == "maxItems" && ptr.Deref(was.XListType, "atomic") == "atomic" && !before.UniqueItems:
			added.narrow = func(s *structuralschema.Structural) { atLeast(&validationOf(s).MinItems, 1) }
			added.put = func(value any) []any {
				list, _ := value.([]any)
				return []any{slices.Repeat(list[:min(1, len(list))], int(length)+1)}
			}
		case before.Pattern == "":
		case b.Name == "minLength":
			added.strings = &texts{"", length, -1}
		case b.Name == "maxLength":
			added.strings = &texts{"", -1, length}
		}
	}
	if now.MultipleOf != nil && (before.MultipleOf == nil || math.Mod(*before.MultipleOf, *now.MultipleOf) != 0) {
		text := ""
		if before.MultipleOf != nil {
			text = short(*before.MultipleOf)
		}
		c.add(steps, becomes("multipleOf", text, short(*now.MultipleOf)), "other new and changed values are refused").says = "multiple of"
	}
}

// boundWords are those of the errors about a bound.
var boundWords = map[string]string{
	"maximum": "should be less than", "minimum": "should be greater than",
	"maxLength": "Too long", "maxItems": "Too many", "maxProperties": "Too many",
	"minLength": "at least", "minItems": "at least", "minProperties": "at least",
}

// ignore takes away what says nothing: formats that the server ignores, and the types beside x-kubernetes-int-or-string.
func ignore(s *structuralschema.Structural) {
	strip := func(kind string, v *structuralschema.ValueValidation) bool {
		if v != nil {
			s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{kind}, Format: v.Format}}
			_ = validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())(s) // always nil
			v.Format = s.Format
			if len(v.AnyOf) > 0 && v.AnyOf[0].ForbiddenGenerics.Type != "" {
				v.AnyOf = nil
			}
		}
		return true
	}
	(&structuralschema.Visitor{
		Structural:            func(s *structuralschema.Structural) bool { return strip(s.Type, s.ValueValidation) },
		NestedValueValidation: func(v *structuralschema.NestedValueValidation) bool { return strip("", &v.ValueValidation) },
	}).Visit(s)
}

// widerFormat reports whether a format takes nothing away from the numbers that JSON has, or from those
// within the bounds.
func widerFormat(was *structuralschema.Structural, kind, format string) bool {
	v := validationOrNone(was.ValueValidation)
	return kind == "integer" && format == "int64" || kind == "number" && format == "double" ||
		kind == "integer" && format == "int32" && ptr.Deref(v.Minimum, math.Inf(-1)) >= math.MinInt32 && ptr.Deref(v.Maximum, math.Inf(1)) <= math.MaxInt32
}

// withImplied returns the validation of values, with the bounds that the rest of the schema implies.
func withImplied(s *structuralschema.Structural) *structuralschema.ValueValidation {
	v := *validationOrNone(s.ValueValidation)
	if s.Type == "integer" && v.Format == "int32" {
		if ptr.Deref(v.Minimum, math.Inf(-1)) < math.MinInt32 {
			v.Minimum = new(float64(math.MinInt32))
		}
		if ptr.Deref(v.Maximum, math.Inf(1)) > math.MaxInt32 {
			v.Maximum = new(float64(math.MaxInt32))
		}
	}
	if s.Type == "object" {
		v.MinProperties = new(max(ptr.Deref(v.MinProperties, 0), int64(len(v.Required))))
		if undeclared(s) == nil {
			v.MaxProperties = new(min(ptr.Deref(v.MaxProperties, math.MaxInt64), int64(len(s.Properties))))
		}
	}
	return &v
}

// compositions compares allOf, anyOf, oneOf and not.
func (c *comparison) compositions(was *structuralschema.Structural, now *structuralschema.ValueValidation, steps []string) {
	before := validationOrNone(was.ValueValidation)
	same := func(a, b []structuralschema.NestedValueValidation) bool {
		a, b = possible(was, a), possible(was, b)
		return len(a) == len(b) && len(missing(a, b)) == 0 && len(missing(b, a)) == 0
	}
	added := slices.DeleteFunc(missing(now.AllOf, before.AllOf), func(v structuralschema.NestedValueValidation) bool { return implies(was, v) })
	compare := func(name, what string, refused structuralschema.ValueValidation) {
		added := c.add(steps, what, "new and changed values that it does not allow are refused")
		added.says = "(" + name + ")"
		added.narrow = func(s *structuralschema.Structural) {
			v := validationOf(s)
			v.AllOf = append(v.AllOf, structuralschema.NestedValueValidation{ValueValidation: refused})
		}
	}
	not := func(v structuralschema.ValueValidation) structuralschema.ValueValidation {
		return structuralschema.ValueValidation{Not: &structuralschema.NestedValueValidation{ValueValidation: v}}
	}
	if len(added) > 0 {
		compare("allOf", "allOf has "+nestedText(added...)+" now", not(structuralschema.ValueValidation{AllOf: added}))
	}
	if len(now.AnyOf) > 0 && (len(before.AnyOf) == 0 || len(missing(before.AnyOf, now.AnyOf)) > 0) {
		compare("anyOf", becomes("anyOf", nestedText(before.AnyOf...), nestedText(now.AnyOf...)), not(structuralschema.ValueValidation{AnyOf: now.AnyOf}))
	}
	if len(now.OneOf) > 0 && !same(before.OneOf, now.OneOf) {
		compare("oneOf", becomes("oneOf", nestedText(before.OneOf...), nestedText(now.OneOf...)), not(structuralschema.ValueValidation{OneOf: now.OneOf}))
	}
	if wasNot, isNot := listOf(before.Not), listOf(now.Not); len(possible(was, isNot)) > 0 && !same(wasNot, isNot) {
		compare("not", becomes("not", nestedText(wasNot...), nestedText(isNot...)), now.Not.ValueValidation)
	}
}

func listOf[T any](value *T) []T {
	if value == nil {
		return nil
	}
	return []T{*value}
}

// possible returns the validations that values of a schema may have. Those that require a new field are impossible.
func possible(was *structuralschema.Structural, all []structuralschema.NestedValueValidation) []structuralschema.NestedValueValidation {
	return slices.DeleteFunc(slices.Clone(all), func(v structuralschema.NestedValueValidation) bool {
		return len(v.AnyOf) > 0 && len(possible(was, v.AnyOf)) == 0 || len(possible(was, v.AllOf)) < len(v.AllOf) ||
			slices.ContainsFunc(v.Required, func(name string) bool { return propertyOf(was, name) == nil })
	})
}

// implies reports whether a schema says what a validation in allOf says about the value itself.
func implies(was *structuralschema.Structural, v structuralschema.NestedValueValidation) bool {
	if v.Items != nil || len(v.Properties) > 0 || v.AdditionalProperties != nil {
		return false
	}
	now := &structuralschema.Structural{Generic: was.Generic, ValueValidation: &v.ValueValidation}
	inner := &comparison{}
	inner.constraints(was, now, nil)
	return len(inner.changes) == 0
}

// oldSelf is in the rules that are about updates. They are about objects that are created,
// too, if optionalOldSelf is true.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// creates reports whether a rule about updates is about objects that are created, too.
func creates(rule apiextensionsv1.ValidationRule) bool { return ptr.Deref(rule.OptionalOldSelf, false) }

// rules compares the CEL rules. A new message alone breaks nothing.
func (c *comparison) rules(before, now *structuralschema.Structural, steps []string) {
	for _, rule := range now.XValidations {
		expression := strings.TrimSpace(rule.Rule)
		if slices.ContainsFunc(before.XValidations, func(was apiextensionsv1.ValidationRule) bool {
			return strings.TrimSpace(was.Rule) == expression && creates(was) == creates(rule)
		}) {
			continue
		}
		what := "there is a new rule: " + expression
		if creates(rule) {
			what = "there is a new rule with optionalOldSelf: " + expression
		}
		added := c.add(steps, what, "new and changed values that break it are refused")
		added.rule, added.harmless = expression, harmless(rule, before, now)
		added.updates = oldSelf.MatchString(expression)
		added.creates = !added.updates || creates(rule)
		if !added.creates {
			added.Why = "updates that break it are refused"
		}
		if rule.FieldPath != "" {
			added.shown |= inside
		}
		if rule.MessageExpression == "" {
			added.says = cmp.Or(strings.TrimSpace(rule.Message), expression)
		}
	}
}

// scale compares what the scale subresource requires of the fields that it reads: numbers of
// replicas are not negative (apiextensions-apiserver/pkg/registry/customresource/validator.go,
// ValidateScaleSpec).
func (c *comparison) scale(was, is *version) {
	now := subresources(is).Scale
	if now == nil {
		return
	}
	before := cmp.Or(subresources(was).Scale, &apiextensionsv1.CustomResourceSubresourceScale{})
	for _, path := range []string{now.SpecReplicasPath, now.StatusReplicasPath} {
		steps, at := strings.Split(strings.TrimPrefix(path, "."), "."), was.structural
		for _, step := range steps {
			if at != nil {
				at = propertyOf(at, step)
			}
		}
		if at == nil || path == before.SpecReplicasPath || path == before.StatusReplicasPath {
			continue
		}
		v := validationOrNone(at.ValueValidation)
		if at.Type == "integer" && v.Minimum != nil && *v.Minimum >= 0 && (v.Format == "int32" || v.Maximum != nil && *v.Maximum <= math.MaxInt32) {
			continue
		}

		read := c.add(steps, "the scale subresource reads it now", "what is not an integer from 0 to 2147483647 is refused, even in updates that do not change them")
		read.put = func(value any) []any { return []any{int64(-1), int64(math.MaxInt32 + 1), 0.5, value} }
	}
}

// status compares whether the status is a subresource.
func (c *comparison) status(was, is *version) {
	if was.hasStatus() || !is.hasStatus() || propertyOf(was.structural, "status") == nil {
		return
	}
	added := c.add([]string{"status"}, "the subresource is added", "the status in any other write is ignored: clients that write the status must write to the subresource")
	added.Path = "subresources.status"
	added.shown, added.certain, added.created = byData, true, true
}

// topology compares how lists and maps are merged, and which items of lists are the same.
func (c *comparison) topology(before, now *structuralschema.Structural, steps []string) {
	const merged = "server-side apply merges it otherwise than before: what several managers own may be lost"
	if was, is := ptr.Deref(before.XListType, "atomic"), ptr.Deref(now.XListType, "atomic"); was != is || !slices.Equal(before.XListMapKeys, now.XListMapKeys) {
		what := fmt.Sprintf("the list type %s is now %s", listType(before), listType(now))
		if was == is {
			what = fmt.Sprintf("the keys %s are now %s", strings.Join(before.XListMapKeys, ", "), strings.Join(now.XListMapKeys, ", "))
		}
		unique := is == "atomic" || was == "map" && (is == "set" || len(missing(before.XListMapKeys, now.XListMapKeys)) == 0)
		if unique {
			c.add(steps, what, merged).merged = true
		} else {
			added := c.add(steps, what, "new and changed lists in which two items are the same to it are refused, and "+merged)
			added.says = "Duplicate value"
			added.narrow = func(s *structuralschema.Structural) { atLeast(&validationOf(s).MinItems, 2) }
			added.shown |= inside
		}
	}
	if was, is := ptr.Deref(before.XMapType, "granular"), ptr.Deref(now.XMapType, "granular"); was != is {
		c.add(steps, fmt.Sprintf("the map type %s is now %s", was, is), merged).merged = true
	}
}

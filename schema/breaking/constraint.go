package breaking

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/crdkit/crdkit/internal/generate"
)

// constraints compares what values must be, beside their type.
func (c *comparison) constraints(was, is *structuralschema.Structural, steps []string) {
	before, now := validationOrNone(was.ValueValidation), validationOrNone(is.ValueValidation)
	c.required(was, is, steps)
	c.enum(before, now, steps)
	c.bounds(before, now, steps)
	if now.Pattern != "" && !samePattern(before.Pattern, now.Pattern) {
		what := "it has the pattern " + now.Pattern + " now"
		if before.Pattern != "" {
			what = "the pattern " + before.Pattern + " is now " + now.Pattern
		}
		added := c.add(steps, what, "values that do not match it are refused")
		added.says, added.put = "should match", mismatches(before.Pattern, now.Pattern)
	}
	if now.Format != "" && now.Format != before.Format && checked(is.Type, now.Format) && !widerFormat(is.Type, now.Format) {
		what := "it has the format " + now.Format + " now"
		if before.Format != "" {
			what = "the format " + before.Format + " is now " + now.Format
		}
		c.add(steps, what, "values of another format are refused").says = "must be of type"
	}
	c.compositions(before, now, steps)
	c.rules(was, is, steps)
}

// samePattern reports whether two patterns differ in nothing but how they are written.
func samePattern(before, now string) bool {
	was, err := syntax.Parse(before, syntax.Perl)
	is, other := syntax.Parse(now, syntax.Perl)
	return err == nil && other == nil && was.Simplify().String() == is.Simplify().String()
}

// mismatches returns strings that match a pattern and not another one: a value, and that with more
// characters of other classes.
func mismatches(before, now string) func(value any) []any {
	was, err := regexp.Compile(before)
	is, other := regexp.Compile(now)
	if err != nil || other != nil {
		return nil
	}
	return func(value any) (all []any) {
		text, _ := value.(string)
		for _, more := range []string{"", " ", "a", "A", "0", "-", "_", ".", "/", ":", "*", "é", "\n", strings.Repeat("a", 64)} {
			for _, s := range []string{text + more, more + text, more} {
				if was.MatchString(s) && !is.MatchString(s) {
					all = append(all, s)
				}
			}
		}
		return all
	}
}

func validationOrNone(v *structuralschema.ValueValidation) *structuralschema.ValueValidation {
	if v == nil {
		return &structuralschema.ValueValidation{}
	}
	return v
}

func (c *comparison) required(was, is *structuralschema.Structural, steps []string) {
	before, now := validationOrNone(was.ValueValidation), validationOrNone(is.ValueValidation)
	for _, name := range missing(now.Required, before.Required) {
		if p, ok := is.Properties[name]; ok && p.Default.Object != nil {
			continue // it is always there
		}
		added := c.add(below(steps, name), "it is now required", "objects without it are refused")
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
		c.add(steps, "only some values are allowed now", "all others are refused").says = "Unsupported value"
		return
	}
	for _, v := range before.Enum {
		if slices.ContainsFunc(now.Enum, func(w structuralschema.JSON) bool { return reflect.DeepEqual(v, w) }) {
			continue
		}
		removed := c.add(steps, "the value "+short(v.Object)+" is removed", "objects that have it are refused")
		removed.says = "Unsupported value"
		removed.narrow = func(s *structuralschema.Structural) {
			validationOf(s).Enum = []structuralschema.JSON{v}
		}
	}
}

// bounds compares minima and maxima. Objects of a schema that begins where the new one ends
// show it.
func (c *comparison) bounds(before, now *structuralschema.ValueValidation, steps []string) {
	was := map[string]generate.Bound{}
	for _, b := range generate.Bounds(before) {
		was[b.Name] = b
	}
	for _, b := range generate.Bounds(now) {
		old, bounded := was[b.Name]
		if bounded && !b.Stricter(old) {
			continue
		}
		var value *float64
		if bounded {
			value = &old.Value
		}
		c.bound(steps, b.Name, value, &b.Value, boundWords[b.Name]).narrow = func(s *structuralschema.Structural) { b.Beyond(validationOf(s)) }
	}
	if now.MultipleOf != nil && (before.MultipleOf == nil || math.Mod(*before.MultipleOf, *now.MultipleOf) != 0) {
		c.bound(steps, "multipleOf", before.MultipleOf, now.MultipleOf, "multiple of")
	}
}

func (c *comparison) bound(steps []string, name string, before, now *float64, says string) *change {
	what := fmt.Sprintf("%s is %s now", name, short(*now))
	if before != nil && *before != *now {
		what = fmt.Sprintf("%s %s is now %s", name, short(*before), short(*now))
	} else if before != nil {
		what = fmt.Sprintf("%s %s itself is no longer allowed", name, short(*now))
	}
	added := c.add(steps, what, "values beyond it are refused")
	if name == "multipleOf" {
		added.Why = "other values are refused"
	}
	added.says = says
	return added
}

// boundWords are those of the errors about a bound.
var boundWords = map[string]string{
	"maximum": "should be less than", "minimum": "should be greater than",
	"maxLength": "Too long", "maxItems": "Too many", "maxProperties": "Too many",
	"minLength": "at least", "minItems": "at least", "minProperties": "at least",
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// checked reports whether the server checks a format.
func checked(kind, format string) bool {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{kind}, Format: format}}
	return validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())(s) == nil && s.Format != ""
}

// widerFormat reports whether a format takes nothing away from the numbers that JSON has.
func widerFormat(kind, format string) bool {
	return kind == "integer" && format == "int64" || kind == "number" && format == "double"
}

// compositions compares allOf, anyOf, oneOf and not.
func (c *comparison) compositions(before, now *structuralschema.ValueValidation, steps []string) {
	for _, j := range []struct {
		name     string
		narrowed bool
	}{
		{"allOf", len(missingFrom(now.AllOf, before.AllOf)) > 0},
		{"anyOf", len(now.AnyOf) > 0 && (len(before.AnyOf) == 0 || len(missingFrom(before.AnyOf, now.AnyOf)) > 0)},
		{"oneOf", len(now.OneOf) > 0 && !reflect.DeepEqual(before.OneOf, now.OneOf)},
		{"not", now.Not != nil && !reflect.DeepEqual(before.Not, now.Not)},
	} {
		if j.narrowed {
			c.add(steps, j.name+" has changed", "values that it does not allow are refused")
		}
	}
}

// missingFrom returns what is in one list and not in the other.
func missingFrom(from, in []structuralschema.NestedValueValidation) (all []structuralschema.NestedValueValidation) {
	for _, v := range from {
		if !slices.ContainsFunc(in, func(w structuralschema.NestedValueValidation) bool { return reflect.DeepEqual(v, w) }) {
			all = append(all, v)
		}
	}
	return all
}

// oldSelf is in the rules that are about updates. They are about objects that are created,
// too, if optionalOldSelf is true.
var oldSelf = regexp.MustCompile(`\boldSelf\b`)

// rules compares the CEL rules. A new message alone breaks nothing.
func (c *comparison) rules(before, now *structuralschema.Structural, steps []string) {
	for _, rule := range now.XValidations {
		expression := strings.TrimSpace(rule.Rule)
		if slices.ContainsFunc(before.XValidations, func(was apiextensionsv1.ValidationRule) bool {
			return strings.TrimSpace(was.Rule) == expression && reflect.DeepEqual(was.OptionalOldSelf, rule.OptionalOldSelf)
		}) || harmless(rule, before, now) {
			continue
		}
		added := c.add(steps, "there is a new rule: "+expression, "objects that break it are refused")
		added.rule = expression
		if a := before.AdditionalProperties; a != nil && a.Structural != nil {
			added.put = oddKeys
		}
		added.updates = oldSelf.MatchString(expression)
		added.creates = !added.updates || rule.OptionalOldSelf != nil && *rule.OptionalOldSelf
		if !added.creates {
			added.Why = "updates that break it are refused"
		}
		if rule.FieldPath != "" {
			added.shown |= inside
		}
		if message := strings.TrimSpace(rule.Message); message != "" {
			added.says = message
		} else if rule.MessageExpression == "" {
			added.says = expression
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
		if v.Minimum != nil && *v.Minimum >= 0 && (v.Format == "int32" || v.Maximum != nil && *v.Maximum <= math.MaxInt32) {
			continue
		}

		read := c.add(steps, "the scale subresource reads it now", "numbers below 0 or above 2147483647 are refused, even in updates that do not change them")
		read.put = func(value any) []any { return []any{int64(-1), int64(math.MaxInt32 + 1), value} }
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

// oddKeys returns a map as it is, and with a key that rules about keys may refuse.
func oddKeys(value any) []any {
	all := []any{value}
	object, _ := value.(map[string]any)
	for _, key := range []string{"", " ", strings.Repeat("a", 300), "A", "a/b/c"} {
		for _, v := range object {
			all = append(all, map[string]any{key: v})
			break
		}
	}
	return all
}

// topology compares how lists and maps are merged, and which items of lists are the same.
func (c *comparison) topology(before, now *structuralschema.Structural, steps []string) {
	const merged = "server-side apply merges it otherwise than before: what several managers own may be lost"
	if was, is := valueOr(before.XListType, "atomic"), valueOr(now.XListType, "atomic"); was != is || !slices.Equal(before.XListMapKeys, now.XListMapKeys) {
		what := fmt.Sprintf("the list type %s is now %s", was, is)
		if was == is {
			what = fmt.Sprintf("the keys %s are now %s", strings.Join(before.XListMapKeys, ", "), strings.Join(now.XListMapKeys, ", "))
		}
		unique := is == "atomic" || was == "map" && (is == "set" || len(missing(before.XListMapKeys, now.XListMapKeys)) == 0)
		if unique {
			c.add(steps, what, merged).merged = true
		} else {
			added := c.add(steps, what, "lists in which two items are the same to it are refused, and "+merged)
			added.says = "Duplicate value"
			added.narrow = func(s *structuralschema.Structural) { atLeast(&validationOf(s).MinItems, 2) }
			added.shown |= inside
		}
	}
	if was, is := valueOr(before.XMapType, "granular"), valueOr(now.XMapType, "granular"); was != is {
		c.add(steps, fmt.Sprintf("the map type %s is now %s", was, is), merged).merged = true
	}
}

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// change is a breaking change of a schema, and how to find an object that shows it.
type change struct {
	BreakingChange
	steps []string // to the value
	// narrow changes the old schema of the value so that its objects are likely to show it;
	// put is what may be put in the place of a value. Either may be nil.
	narrow func(s *structuralschema.Structural)
	put    func(value any) (any, bool)
	// child is the field of the value that errors and alterations are about, if not the
	// value itself.
	child  string
	shown  shown
	says   []string // an error has one of these words; none for any error
	merged bool     // it is about how objects are merged, not about what they may be
}

// shown says what shows a change.
type shown int

const (
	refused shown = 1 << iota // an error at the place
	altered                   // what is stored there
	inside                    // and either below the place, too
)

// comparison collects the breaking changes between two schemas.
type comparison struct{ changes []*change }

func (c *comparison) add(steps []string, what, why string) *change {
	added := &change{BreakingChange: BreakingChange{Path: pathOf(steps), What: what, Why: why}, steps: slices.Clone(steps), shown: refused}
	c.changes = append(c.changes, added)
	return added
}

func below(steps []string, step string) []string { return append(slices.Clone(steps), step) }

// compare compares what is at a place.
func (c *comparison) compare(old, new *structuralschema.Structural, steps []string) {
	if typeOf(old) != typeOf(new) && !widerType(old, new) {
		added := c.add(steps, fmt.Sprintf("the type %s is now %s", typeOf(old), typeOf(new)), "values of the old type are refused")
		added.shown, added.says = refused|altered|inside, []string{"must be of type", "Unsupported value"}
		return
	}
	if old.Nullable && !new.Nullable {
		nullable := c.add(steps, "it is no longer nullable", "null is removed, replaced by the default, or refused in a list")
		nullable.shown = refused | altered
		nullable.put = func(any) (any, bool) { return nil, true }
	}
	c.defaults(old, new, steps)
	c.values(orNone(old.ValueValidation), orNone(new.ValueValidation), old, new, steps)
	c.rules(old, new, steps)
	c.topology(old, new, steps)
	if old.XEmbeddedResource != new.XEmbeddedResource && new.XEmbeddedResource {
		c.add(steps, "it is now an embedded resource", "without apiVersion, kind and valid metadata, it is refused").shown |= inside
	}
	if old.Items != nil && new.Items != nil {
		c.compare(old.Items, new.Items, below(steps, anyItem))
	}
	c.fields(old, new, steps)
}

func orNone(v *structuralschema.ValueValidation) *structuralschema.ValueValidation {
	if v == nil {
		return &structuralschema.ValueValidation{}
	}
	return v
}

func typeOf(s *structuralschema.Structural) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// widerType says whether values of the old type are of the new type too.
func widerType(old, new *structuralschema.Structural) bool {
	switch from, to := typeOf(old), typeOf(new); to {
	case "any":
		return true
	case "number":
		return from == "integer"
	case "integer or string":
		return from == "integer" || from == "string"
	}
	return false
}

// defaults compares the defaults of the fields of an object.
func (c *comparison) defaults(old, new *structuralschema.Structural, steps []string) {
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		is, ok := new.Properties[name]
		was := old.Properties[name]
		if !ok || reflect.DeepEqual(was.Default, is.Default) {
			continue
		}
		what := fmt.Sprintf("the default %s is now %s", text(was.Default.Object), text(is.Default.Object))
		why := "objects without the field get another value than before"
		switch {
		case was.Default.Object == nil:
			what, why = "it has the default "+text(is.Default.Object)+" now", "objects without the field get one that nobody wrote"
		case is.Default.Object == nil:
			what, why = "the default "+text(was.Default.Object)+" is removed", "new objects without the field stay without it"
		}
		added := c.add(below(steps, name), what, why)
		added.steps, added.child, added.shown = slices.Clone(steps), name, altered
		added.narrow = without(name)
	}
}

// without removes a field from objects.
func without(name string) func(*structuralschema.Structural) {
	return func(s *structuralschema.Structural) {
		delete(s.Properties, name)
		if s.ValueValidation != nil {
			s.ValueValidation.Required = slices.DeleteFunc(s.ValueValidation.Required, func(r string) bool { return r == name })
		}
	}
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(data) > 60 {
		return string(data[:57]) + "..."
	}
	return string(data)
}

// values compares what the values themselves must be.
func (c *comparison) values(old, new *structuralschema.ValueValidation, was, is *structuralschema.Structural, steps []string) {
	for _, name := range missing(new.Required, old.Required) {
		if p, ok := is.Properties[name]; ok && p.Default.Object != nil {
			continue // it is always there
		}
		added := c.add(below(steps, name), "it is now required", "objects without it are refused")
		added.steps, added.child, added.says = slices.Clone(steps), name, []string{"Required value"}
		added.narrow = without(name)
	}
	c.enum(old, new, steps)
	c.bounds(old, new, steps)
	if new.UniqueItems && !old.UniqueItems {
		c.add(steps, "items must be unique now", "lists with an item twice are refused").put = twice
	}
	if new.Pattern != "" && new.Pattern != old.Pattern {
		what := "it has the pattern " + new.Pattern + " now"
		if old.Pattern != "" {
			what = "the pattern " + old.Pattern + " is now " + new.Pattern
		}
		c.add(steps, what, "values that do not match it are refused").says = []string{"should match"}
	}
	if new.Format != "" && new.Format != old.Format && checked(is.Type, new.Format) && !widerFormat(is.Type, new.Format) {
		what := "it has the format " + new.Format + " now"
		if old.Format != "" {
			what = "the format " + old.Format + " is now " + new.Format
		}
		c.add(steps, what, "values of another format are refused").says = []string{"must be of type " + new.Format, "with format " + new.Format}
	}
	for _, j := range []struct {
		name     string
		narrowed bool
	}{
		{"allOf", len(lost(new.AllOf, old.AllOf)) > 0},
		{"anyOf", len(new.AnyOf) > 0 && (len(old.AnyOf) == 0 || len(lost(old.AnyOf, new.AnyOf)) > 0)},
		{"oneOf", len(new.OneOf) > 0 && !reflect.DeepEqual(old.OneOf, new.OneOf)},
		{"not", new.Not != nil && !reflect.DeepEqual(old.Not, new.Not)},
	} {
		if j.narrowed {
			c.add(steps, j.name+" has changed", "values that it does not allow are refused")
		}
	}
}

// lost returns what is in one list and not in the other.
func lost(from, in []structuralschema.NestedValueValidation) (all []structuralschema.NestedValueValidation) {
	for _, v := range from {
		if !slices.ContainsFunc(in, func(w structuralschema.NestedValueValidation) bool { return reflect.DeepEqual(v, w) }) {
			all = append(all, v)
		}
	}
	return all
}

// checked says whether the server checks a format.
func checked(kind, format string) bool {
	s := &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{kind}, Format: format}}
	return validation.StripUnsupportedFormatsPostProcessorForVersion(environment.DefaultCompatibilityVersion())(s) == nil && s.Format != ""
}

// widerFormat says whether a format takes nothing away from the numbers that JSON has.
func widerFormat(kind, format string) bool {
	return kind == "integer" && format == "int64" || kind == "number" && format == "double"
}

// twice makes a list in which one item is there twice.
func twice(value any) (any, bool) {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	return []any{list[0], list[0]}, true
}

func (c *comparison) enum(old, new *structuralschema.ValueValidation, steps []string) {
	if len(new.Enum) == 0 {
		return
	}
	if len(old.Enum) == 0 {
		c.add(steps, "only some values are allowed now", "all others are refused").says = []string{"Unsupported value"}
		return
	}
	for _, v := range old.Enum {
		if slices.ContainsFunc(new.Enum, func(w structuralschema.JSON) bool { return reflect.DeepEqual(v, w) }) {
			continue
		}
		removed := c.add(steps, "the value "+text(v.Object)+" is removed", "objects that have it are refused")
		removed.says = []string{"Unsupported value"}
		removed.narrow = func(s *structuralschema.Structural) {
			s.ValueValidation.Enum = []structuralschema.JSON{v}
		}
	}
}

// bounds compares minima and maxima. Objects of a schema that begins where the new one ends
// show it.
func (c *comparison) bounds(old, new *structuralschema.ValueValidation, steps []string) {
	none := math.Inf(1)
	upper, lower := func(p *float64) float64 { return or(p, none) }, func(p *float64) float64 { return or(p, -none) }
	if upper(new.Maximum) < upper(old.Maximum) || upper(new.Maximum) == upper(old.Maximum) && new.Maximum != nil && new.ExclusiveMaximum && !old.ExclusiveMaximum {
		c.bound(steps, "maximum", old.Maximum, new.Maximum, func(v *structuralschema.ValueValidation) {
			v.Minimum, v.ExclusiveMinimum = new.Maximum, !new.ExclusiveMaximum
		}, "should be less than")
	}
	if lower(new.Minimum) > lower(old.Minimum) || lower(new.Minimum) == lower(old.Minimum) && new.Minimum != nil && new.ExclusiveMinimum && !old.ExclusiveMinimum {
		c.bound(steps, "minimum", old.Minimum, new.Minimum, func(v *structuralschema.ValueValidation) {
			v.Maximum, v.ExclusiveMaximum = new.Minimum, !new.ExclusiveMinimum
		}, "should be greater than")
	}
	for _, b := range []struct {
		name        string
		old, new    *int64
		least, most func(v *structuralschema.ValueValidation) **int64
		says        string
	}{
		{"maxLength", old.MaxLength, new.MaxLength, func(v *structuralschema.ValueValidation) **int64 { return &v.MinLength }, nil, ""},
		{"maxItems", old.MaxItems, new.MaxItems, func(v *structuralschema.ValueValidation) **int64 { return &v.MinItems }, nil, ""},
		{"maxProperties", old.MaxProperties, new.MaxProperties, func(v *structuralschema.ValueValidation) **int64 { return &v.MinProperties }, nil, ""},
		{"minLength", old.MinLength, new.MinLength, nil, func(v *structuralschema.ValueValidation) **int64 { return &v.MaxLength }, ""},
		{"minItems", old.MinItems, new.MinItems, nil, func(v *structuralschema.ValueValidation) **int64 { return &v.MaxItems }, ""},
		{"minProperties", old.MinProperties, new.MinProperties, nil, func(v *structuralschema.ValueValidation) **int64 { return &v.MaxProperties }, ""},
	} {
		switch {
		case b.new == nil:
		case b.least != nil && (b.old == nil || *b.new < *b.old):
			c.bound(steps, b.name, asFloat(b.old), asFloat(b.new), func(v *structuralschema.ValueValidation) {
				*b.least(v) = new1(*b.new + 1)
			}, "at most", "Too long", "Too many")
		case b.most != nil && (b.old == nil && *b.new > 0 || b.old != nil && *b.new > *b.old):
			c.bound(steps, b.name, asFloat(b.old), asFloat(b.new), func(v *structuralschema.ValueValidation) {
				*b.most(v) = new1(*b.new - 1)
			}, "at least")
		}
	}
	if new.MultipleOf != nil && (old.MultipleOf == nil || math.Mod(*old.MultipleOf, *new.MultipleOf) != 0) {
		c.bound(steps, "multipleOf", old.MultipleOf, new.MultipleOf, nil, "multiple of")
	}
}

func new1(n int64) *int64 { return &n }

func or(p *float64, otherwise float64) float64 {
	if p == nil {
		return otherwise
	}
	return *p
}

func asFloat(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

func (c *comparison) bound(steps []string, name string, old, new *float64, narrow func(*structuralschema.ValueValidation), says ...string) {
	what := fmt.Sprintf("%s is %v now", name, *new)
	if old != nil && *old != *new {
		what = fmt.Sprintf("%s %v is now %v", name, *old, *new)
	} else if old != nil {
		what = fmt.Sprintf("%s %v itself is no longer allowed", name, *new)
	}
	added := c.add(steps, what, "values beyond it are refused")
	added.says = says
	if narrow != nil {
		added.narrow = func(s *structuralschema.Structural) {
			if s.ValueValidation == nil {
				s.ValueValidation = &structuralschema.ValueValidation{}
			}
			narrow(s.ValueValidation)
		}
	}
}

// rules compares the rules of CEL. One that is the same but for its message breaks
// nothing.
func (c *comparison) rules(old, new *structuralschema.Structural, steps []string) {
	for _, rule := range new.XValidations {
		known := false
		for _, was := range old.XValidations {
			known = known || strings.TrimSpace(was.Rule) == strings.TrimSpace(rule.Rule) && reflect.DeepEqual(was.OptionalOldSelf, rule.OptionalOldSelf)
		}
		if known {
			continue
		}
		added := c.add(steps, "there is a new rule: "+strings.TrimSpace(rule.Rule), "objects that break it are refused")
		if rule.FieldPath != "" {
			added.shown |= inside
		}
		if message := strings.TrimSpace(rule.Message); message != "" {
			added.says = []string{message}
		} else if rule.MessageExpression == "" {
			added.says = []string{strings.TrimSpace(rule.Rule)}
		}
	}
}

// topology compares how lists and maps are merged.
func (c *comparison) topology(old, new *structuralschema.Structural, steps []string) {
	kind := func(p *string, otherwise string) string {
		if p == nil {
			return otherwise
		}
		return *p
	}
	const merged = "server-side apply merges it otherwise than before: what several managers own may be lost"
	if was, is := kind(old.XListType, "atomic"), kind(new.XListType, "atomic"); was != is || !slices.Equal(old.XListMapKeys, new.XListMapKeys) {
		what := fmt.Sprintf("the list type %s is now %s", was, is)
		if was == is {
			what = fmt.Sprintf("the keys %s are now %s", strings.Join(old.XListMapKeys, ", "), strings.Join(new.XListMapKeys, ", "))
		}
		if is == "atomic" {
			c.add(steps, what, merged).merged = true
			return
		}
		added := c.add(steps, what, "lists with an item or a key twice are refused, and "+merged)
		added.put, added.says = twice, []string{"Duplicate value"}
		added.shown |= inside
	}
	if was, is := kind(old.XMapType, "granular"), kind(new.XMapType, "granular"); was != is {
		c.add(steps, fmt.Sprintf("the map type %s is now %s", was, is), merged).merged = true
	}
}

// fields compares the fields of objects, known and unknown.
func (c *comparison) fields(old, new *structuralschema.Structural, steps []string) {
	values := func(s *structuralschema.Structural) *structuralschema.Structural {
		if s.AdditionalProperties == nil {
			return nil
		}
		return s.AdditionalProperties.Structural
	}
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was, at := old.Properties[name], below(steps, name)
		if is, ok := new.Properties[name]; ok {
			c.compare(&was, &is, at)
		} else if is := values(new); is != nil {
			c.compare(&was, is, at)
		} else if !new.XPreserveUnknownFields {
			c.add(at, "the field is removed", "it is pruned: its value is lost").shown = altered
		}
	}
	if old.XPreserveUnknownFields && !new.XPreserveUnknownFields && !new.XIntOrString {
		unknown := c.add(steps, "unknown fields are no longer preserved", "they are pruned: their values are lost")
		unknown.shown = altered | inside
		unknown.put = func(value any) (any, bool) {
			m, ok := value.(map[string]any)
			if !ok {
				return nil, false
			}
			m = maps.Clone(m)
			m["unknown"] = "field"
			return m, true
		}
	}
	isMap := func(s *structuralschema.Structural) bool {
		return s.AdditionalProperties != nil && (s.AdditionalProperties.Bool || s.AdditionalProperties.Structural != nil)
	}
	if !isMap(old) || new.XPreserveUnknownFields {
		return
	}
	is := values(new)
	switch was := values(old); {
	case !isMap(new):
		added := c.add(steps, "it is no longer a map", "keys that are no fields are pruned: their values are lost")
		added.narrow, added.shown = nonempty, altered|inside
	case was != nil && is != nil:
		c.compare(was, is, below(steps, anyValue))
	case was != nil && is == nil:
		// All below true is pruned; keys and scalars stay.
		if was.Type != "string" && was.Type != "integer" && was.Type != "number" && was.Type != "boolean" {
			added := c.add(below(steps, anyValue), "the schema of the values is removed", "what is in them is pruned")
			added.narrow, added.shown = nonempty, altered|inside
		}
	case was == nil && is != nil:
		added := c.add(below(steps, anyValue), "the values have a schema now", "values that it does not allow are refused or pruned")
		added.narrow, added.shown = nonempty, refused|altered|inside
	}
}

func nonempty(s *structuralschema.Structural) {
	if s.ValueValidation == nil {
		s.ValueValidation = &structuralschema.ValueValidation{}
	}
	if v := s.ValueValidation; v.MinProperties == nil || *v.MinProperties < 1 {
		v.MinProperties = new1(1)
	}
}

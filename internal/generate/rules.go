package generate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// rulesOf returns the rules of a schema that can be broken. What cannot are the rules that
// pruning and defaulting mend: an unknown field, and the absence of a field that has a default.
func rulesOf(s *structuralschema.Structural) []rule {
	l := &ruleList{}
	root := *s
	root.Type, root.Nullable, root.XEmbeddedResource = "object", false, true
	l.add(&root, nil, false)
	return l.rules
}

type ruleList struct{ rules []rule }

// broken is a function that breaks a rule in one way.
type broken = func(value any, draw uint64) (any, string, bool)

// replaced breaks a rule by one of some other values.
func replaced(values func(value any) []any) broken {
	return func(value any, draw uint64) (any, string, bool) {
		all := values(value)
		if len(all) == 0 {
			return nil, "", false
		}
		return all[pick(draw, len(all))], "", true
	}
}

// redrawn breaks a rule by a value of a schema that is without it.
func redrawn(s *structuralschema.Structural, without func(v *structuralschema.ValueValidation)) broken {
	return func(value any, draw uint64) (any, string, bool) {
		bare := *s
		if s.ValueValidation != nil {
			v := *s.ValueValidation
			without(&v)
			bare.ValueValidation = &v
		}
		c := &compiler{memo: map[string]*node{}}
		n := c.compile("", &bare, false)
		made, err := newMaker(random(draw, 0, float64(scatter(draw, 2)%4)/4)).value(n, &choice{}, nil)
		if err != nil || made == nil {
			return nil, "", false
		}
		if old, ok := value.(map[string]any); ok && s.XEmbeddedResource {
			for _, name := range []string{"apiVersion", "kind", "metadata"} {
				if v, ok := old[name]; ok {
					made.(map[string]any)[name] = v
				}
			}
		}
		return made, "", true
	}
}

func (l *ruleList) add(s *structuralschema.Structural, place []string, mended bool) {
	add := func(text string, breaks broken) {
		l.rules = append(l.rules, rule{place: place, broken: text, breaks: breaks})
	}
	if wrong := wrongTypes(s); len(place) > 0 && len(wrong) > 0 {
		name := s.Type
		if s.XIntOrString {
			name = "integer or string"
		}
		add("not of type "+name, replaced(func(any) []any { return runtime.DeepCopyJSONValue(wrong).([]any) }))
		if !s.Nullable && !mended && s.Default.Object == nil {
			add("null", replaced(func(any) []any { return []any{nil} }))
		}
	}
	if v := s.ValueValidation; v != nil {
		l.addValues(s, v, place)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if s.XEmbeddedResource && isMeta(name) {
			continue
		}
		p := s.Properties[name]
		required := s.ValueValidation != nil && slices.Contains(s.ValueValidation.Required, name)
		l.add(&p, append(slices.Clip(place), name), !required)
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		l.add(a.Structural, append(slices.Clip(place), ""), true)
	}
	if s.Items != nil {
		l.add(s.Items, append(slices.Clip(place), ""), false)
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		text := "an element twice in a set"
		if *s.XListType == "map" {
			text = "two elements with the same keys"
		}
		l.rules = append(l.rules, rule{place: place, within: []string{""}, broken: text, hidden: true, breaks: twice(s, true)})
	}
	if s.XEmbeddedResource && len(place) > 0 {
		for _, name := range []string{"apiVersion", "kind"} {
			for _, bad := range []any{nil, "", "a/b/c", int64(1)} {
				text := "invalid"
				if bad == nil {
					text = "required"
				}
				if bad == "a/b/c" && name == "kind" {
					bad = "1"
				}
				l.rules = append(l.rules, rule{place: place, broken: text, hidden: true, breaks: func(value any, _ uint64) (any, string, bool) {
					object, ok := value.(map[string]any)
					if !ok {
						return nil, "", false
					}
					delete(object, name)
					if bad != nil {
						object[name] = bad
					}
					return object, "." + name, true
				}})
			}
		}
		l.rules = append(l.rules, rule{place: place, broken: "invalid", hidden: true, breaks: func(value any, _ uint64) (any, string, bool) {
			object, ok := value.(map[string]any)
			if ok {
				object["metadata"] = map[string]any{"name": "a/b"}
			}
			return object, ".metadata.name", ok
		}})
	}
}

func wrongTypes(s *structuralschema.Structural) []any {
	switch {
	case s.XIntOrString:
		return []any{1.5, true, []any{}, map[string]any{}}
	case s.Type == "object":
		return []any{"x", int64(1), []any{}, false}
	case s.Type == "array":
		return []any{map[string]any{}, "x", int64(0)}
	case s.Type == "string":
		return []any{int64(1), true, 1.5, map[string]any{}}
	case s.Type == "integer":
		return []any{"1", 1.5, true, []any{}}
	case s.Type == "number":
		return []any{"1.5", true, map[string]any{}}
	case s.Type == "boolean":
		return []any{"true", int64(0), []any{}}
	}
	return nil
}

// addValues adds the rules of value validations.
func (l *ruleList) addValues(s *structuralschema.Structural, v *structuralschema.ValueValidation, place []string) {
	add := func(text string, breaks broken) {
		l.rules = append(l.rules, rule{place: place, broken: text, breaks: breaks})
	}
	without := func(text string, without func(v *structuralschema.ValueValidation)) {
		add(text, redrawn(s, without))
	}
	if len(v.Enum) > 0 {
		without("not in enum", func(v *structuralschema.ValueValidation) { v.Enum = nil })
	}
	if len(v.AllOf) > 0 && !(s.XIntOrString && len(v.AllOf) == 1 && bothTypes(v.AllOf[0].AnyOf)) {
		without("not valid against allOf", func(v *structuralschema.ValueValidation) { v.AllOf = nil })
	}
	if len(v.AnyOf) > 0 && !(s.XIntOrString && bothTypes(v.AnyOf)) {
		without("not valid against anyOf", func(v *structuralschema.ValueValidation) { v.AnyOf = nil })
	}
	if len(v.OneOf) > 0 {
		without("not valid against exactly one of oneOf", func(v *structuralschema.ValueValidation) { v.OneOf = nil })
	}
	if v.Not != nil {
		without("valid against not", func(v *structuralschema.ValueValidation) { v.Not = nil })
	}
	if s.Type == "string" || s.XIntOrString {
		l.addTexts(s, v, place)
	}
	if s.Type == "integer" || s.Type == "number" || s.XIntOrString {
		l.addNumbers(s, v, place)
	}
	switch s.Type {
	case "array":
		if least := limit(v.MinItems, 0); least > 0 {
			add(fmt.Sprintf("fewer items than %d", least), func(value any, _ uint64) (any, string, bool) {
				list, ok := value.([]any)
				return list[:min(least-1, len(list))], "", ok
			})
		}
		if most := limit(v.MaxItems, math.MaxInt32); most < 1<<10 {
			without(fmt.Sprintf("more items than %d", most), func(v *structuralschema.ValueValidation) {
				v.MinItems, v.MaxItems = new(int64(most+1)), nil
			})
		}
		if v.UniqueItems {
			l.rules = append(l.rules, rule{place: place, within: []string{""}, broken: "an item twice", breaks: twice(s, false)})
		}
	case "object":
		for _, name := range v.Required {
			if p, ok := s.Properties[name]; ok && p.Default.Object != nil || s.XEmbeddedResource && (len(place) == 0 && isMeta(name)) {
				continue
			}
			add("required", func(value any, _ uint64) (any, string, bool) {
				object, ok := value.(map[string]any)
				delete(object, name)
				return object, "." + name, ok
			})
		}
		if least := limit(v.MinProperties, 0); least > 0 {
			add(fmt.Sprintf("fewer properties than %d", least), func(value any, draw uint64) (any, string, bool) {
				object, ok := value.(map[string]any)
				names := slices.Sorted(maps.Keys(object))
				if n := len(names); n > 0 {
					start := pick(draw, n)
					names = slices.Concat(names[start:], names[:start])
				}
				for _, name := range names {
					if len(object) >= least && !slices.Contains(v.Required, name) && !(s.XEmbeddedResource && isMeta(name)) {
						delete(object, name)
					}
				}
				return object, "", ok && len(object) < least
			})
		}
		if most := limit(v.MaxProperties, math.MaxInt32); most < 1<<10 {
			without(fmt.Sprintf("more properties than %d", most), func(v *structuralschema.ValueValidation) {
				v.MinProperties, v.MaxProperties = new(int64(most+1)), nil
			})
		}
	}
}

func (l *ruleList) addTexts(s *structuralschema.Structural, v *structuralschema.ValueValidation, place []string) {
	add := func(text string, breaks broken) {
		l.rules = append(l.rules, rule{place: place, broken: text, breaks: breaks})
	}
	// anything is tried for rules of which one does not know how to break them.
	anything := func(without func(v *structuralschema.ValueValidation)) broken {
		again := redrawn(s, func(v *structuralschema.ValueValidation) { without(v); v.Enum = nil })
		return func(value any, draw uint64) (any, string, bool) {
			text, ok := value.(string)
			if !ok {
				text = "a"
			}
			all := []any{text + "!", "!" + text, text + "\n", "", "-", "é", "a b", strings.ToUpper(text), "A"}
			if i := pick(draw, len(all)+4); i < len(all) {
				return all[i], "", true
			}
			return again(value, draw)
		}
	}
	if n := limit(v.MinLength, 0); n > 0 {
		add(fmt.Sprintf("shorter than %d", n), replaced(func(value any) []any {
			text, ok := value.(string)
			if !ok {
				text = strings.Repeat("a", n)
			}
			text = string([]rune(text)[:min(n-1, utf8.RuneCountInString(text))])
			return []any{text, strings.Repeat("a", n-1)}
		}))
	}
	if n := limit(v.MaxLength, math.MaxInt32); n <= longest {
		add(fmt.Sprintf("longer than %d", n), replaced(func(value any) []any {
			text, _ := value.(string)
			missing := max(0, n+1-utf8.RuneCountInString(text))
			out := []any{text + strings.Repeat("a", missing), strings.Repeat("é", n+1)}
			if text != "" {
				first, size := utf8.DecodeRuneInString(text)
				out = append(out, text[:size]+strings.Repeat(string(first), missing)+text[size:])
			}
			return out
		}))
	}
	if v.Pattern != "" {
		add("does not match pattern "+v.Pattern, anything(func(v *structuralschema.ValueValidation) { v.Pattern = "" }))
	}
	if _, _, ok := formatPattern(v.Format); ok {
		add("not of format "+v.Format, anything(func(v *structuralschema.ValueValidation) { v.Format = "" }))
	}
}

func (l *ruleList) addNumbers(s *structuralschema.Structural, v *structuralschema.ValueValidation, place []string) {
	add := func(text string, values ...any) {
		l.rules = append(l.rules, rule{place: place, broken: text, breaks: replaced(func(any) []any { return values })})
	}
	// beyond is what is on the other side of a bound, near and far.
	beyond := func(bound float64, exclusive bool, direction int) (values []any) {
		d := float64(direction)
		near := bound
		if !exclusive {
			near = bound + d
			if s.Type == "number" {
				values = append(values, jsonNumber(bound+d/2))
			}
		}
		if s.Type != "number" {
			near = math.Trunc(near)
		}
		for _, f := range []float64{near, near + d, bound + d*1000, bound + d*math.Abs(bound), d * (1 << 62)} {
			if n := jsonNumber(f); s.Type == "number" || n == any(int64(f)) {
				values = append(values, n)
			}
		}
		return values
	}
	if v.Minimum != nil {
		text := fmt.Sprintf("below minimum %v", *v.Minimum)
		if v.ExclusiveMinimum {
			text = fmt.Sprintf("not above exclusive minimum %v", *v.Minimum)
		}
		add(text, beyond(*v.Minimum, v.ExclusiveMinimum, -1)...)
	}
	if v.Maximum != nil {
		text := fmt.Sprintf("above maximum %v", *v.Maximum)
		if v.ExclusiveMaximum {
			text = fmt.Sprintf("not below exclusive maximum %v", *v.Maximum)
		}
		add(text, beyond(*v.Maximum, v.ExclusiveMaximum, 1)...)
	}
	if m := v.MultipleOf; m != nil {
		l.rules = append(l.rules, rule{place: place, broken: fmt.Sprintf("not a multiple of %v", *m), breaks: replaced(func(value any) []any {
			if i, ok := value.(int64); ok && s.Type != "number" {
				return []any{i + 1, i - 1, int64(1)}
			}
			f, _ := value.(float64)
			if i, ok := value.(int64); ok {
				f = float64(i)
			}
			return []any{jsonNumber(f + *m/2), jsonNumber(f - *m/2), jsonNumber(f + *m/3), int64(1)}
		})})
	}
	switch {
	case s.Type == "integer" && v.Format == "int32":
		add("beyond int32", int64(math.MaxInt32)+1, int64(math.MinInt32)-1)
	case s.Type == "number" && v.Format == "float":
		add("beyond float", 1e39, -1e39)
	}
}

// twice makes a list have its first element twice.
func twice(s *structuralschema.Structural, index bool) broken {
	return func(value any, _ uint64) (any, string, bool) {
		list, ok := value.([]any)
		if !ok || len(list) == 0 {
			return nil, "", false
		}
		most := math.MaxInt32
		if s.ValueValidation != nil {
			most = limit(s.ValueValidation.MaxItems, most)
		}
		if len(list) < most {
			list = append(list, nil)
		}
		last := len(list) - 1
		list[last] = runtime.DeepCopyJSONValue(list[0])
		where := ""
		if index {
			where = fmt.Sprintf("[%d]", last)
		}
		return list, where, last > 0
	}
}

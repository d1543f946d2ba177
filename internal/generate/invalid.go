package generate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
)

// Outside makes an object that breaks one rule of the schema, and returns that rule with its
// path, such as "spec.replicas: maximum"; the path of the root is a dot. CEL rules are not
// broken: valid does not tell which of them refuses an object.
//
// It returns an error if it finds no such object.
func (g *Generator) Outside(src *draw.Source) (object map[string]any, rule string, err error) {
	which, how := src.Uint64(), src.Uint64()
	drawn, next := &choice{}, source(src)
	rules := g.rules()
	for i := range min(len(rules), maxTries) {
		r := rules[(pick(which, len(rules))+i)%len(rules)]
		object, ok := g.at(slices.Concat(r.place, r.within), drawn, which, next)
		next = nil // they have been drawn
		if !ok {
			continue
		}
		if object, path, ok := g.spoil(object, r, how); ok {
			return object, cmp.Or(path, ".") + ": " + r.name, nil
		}
	}
	return nil, "", fmt.Errorf("%s: no object breaks any of the %d rules of the schema", g.kind, len(rules))
}

// rule is a rule of the schema for the values at a place.
type rule struct {
	name   string
	place  []string // see maker.value
	within []string // where below it a value is needed to break the rule
	breaks breaker
}

// breaker makes a value that may break a rule of one that does not, which it may change. It also
// returns the path of the fault below the value. Other draws may make other values.
type breaker func(value any, draw uint64) (broken any, path string, ok bool)

// spoil breaks a rule of an object, without breaking another one if possible.
func (g *Generator) spoil(object map[string]any, r rule, draw uint64) (broken map[string]any, path string, ok bool) {
	for try := range tries {
		where, ok := "", false
		with := func(value any, at string) any {
			value, below, done := r.breaks(value, bump(draw, try))
			where, ok = strings.TrimPrefix(at+below, "."), done
			return value
		}
		value, found := replace(runtime.DeepCopyJSON(object), g.schema, r.place, "", with)
		if !found {
			break
		}
		if !ok {
			continue
		}
		here, only := g.refused(value.(map[string]any), where)
		later, _ := g.refused(withDefaults(value, g.schema).(map[string]any), where)
		if !here || !later {
			continue
		}
		if broken == nil || only {
			broken, path = value.(map[string]any), where
		}
		if only {
			break
		}
	}
	return broken, path, broken != nil
}

// refused reports whether an object is refused at a path, and whether only there.
func (g *Generator) refused(object map[string]any, path string) (here, only bool) {
	errs := validation.ValidateCustomResource(nil, object, g.checks())
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, g.schema, object)...)
	plain := strings.NewReplacer("[", "", "]", "", ".", "", "<nil>", "") // keys of maps have brackets
	for _, err := range errs {
		// some errors have their path in the message
		if plain.Replace(err.Field) == plain.Replace(path) ||
			strings.Contains(err.Detail, `"`+path+`" must`) || strings.HasSuffix(err.Detail, " in "+path) {
			here = true
		}
	}
	return here, here && len(errs) == 1
}

// replace replaces the value at a place. It returns false if the place does not exist.
func replace(
	value any, s *structuralschema.Structural, place []string, path string,
	with func(value any, path string) any,
) (any, bool) {
	if len(place) == 0 {
		return with(value, path), true
	}
	ok := false
	switch v := value.(type) {
	case []any:
		if len(v) > 0 {
			v[0], ok = replace(v[0], s.Items, place[1:], path+"[0]", with)
		}
	case map[string]any:
		name := place[0]
		below, declared := s.Properties[name]
		if !declared {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if _, ok := s.Properties[key]; !ok {
					name = key
					break
				}
			}
			below = *s.AdditionalProperties.Structural
		}
		if member, found := v[name]; found {
			v[name], ok = replace(member, &below, place[1:], path+"."+name, with)
		}
	}
	return value, ok
}

// rulesOf returns the rules of a schema that can be broken. Pruning and defaulting repair the
// breach of others: an unknown field, and the absence of a field that has a default.
func rulesOf(s *structuralschema.Structural) []rule {
	root := *s
	root.Type, root.Nullable, root.XEmbeddedResource = "object", false, true
	return appendRules(nil, &root, nil, false)
}

// mistyped has values of other types than the one named.
var mistyped = map[string][]any{
	"":        {1.5, true, []any{}, map[string]any{}}, // an integer or string
	"object":  {"x", int64(1), []any{}, false},
	"array":   {map[string]any{}, "x", int64(0)},
	"string":  {int64(1), true, 1.5, map[string]any{}},
	"integer": {"1", 1.5, true, []any{}},
	"number":  {"1.5", true, map[string]any{}},
	"boolean": {"true", int64(0), []any{}},
}

// appendRules appends the rules of the values at a place. Pruning drops null if it may.
func appendRules(rules []rule, s *structuralschema.Structural, place []string, nullDropped bool) []rule {
	add := func(name string, breaks breaker) {
		rules = append(rules, rule{name: name, place: place, breaks: breaks})
	}
	if len(place) > 0 && (s.Type != "" || s.XIntOrString) {
		add("type", func(_ any, draw uint64) (any, string, bool) {
			wrong := mistyped[s.Type]
			return runtime.DeepCopyJSONValue(wrong[pick(draw, len(wrong))]), "", true
		})
		if !s.Nullable && !nullDropped && s.Default.Object == nil {
			add("null", func(any, uint64) (any, string, bool) { return nil, "", true })
		}
	}
	var required []string
	if v := s.ValueValidation; v != nil {
		required = v.Required
		addValueRules(s, v, add)
	}
	for _, name := range required {
		if s.Properties[name].Default.Object != nil || len(place) == 0 && isMeta(name) {
			continue
		}
		add("required", func(value any, _ uint64) (any, string, bool) {
			object, ok := value.(map[string]any)
			delete(object, name)
			return object, "." + name, ok
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if p := s.Properties[name]; !s.XEmbeddedResource || !isMeta(name) {
			rules = appendRules(rules, &p, append(slices.Clip(place), name), !slices.Contains(required, name))
		}
	}
	element := append(slices.Clip(place), "")
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		rules = appendRules(rules, a.Structural, element, true)
	}
	if s.Items != nil {
		rules = appendRules(rules, s.Items, element, false)
	}
	twice := func(name string, path func(last int) string) {
		rules = append(rules, rule{name, place, []string{""}, repeated(s, path)})
	}
	if s.ValueValidation != nil && s.ValueValidation.UniqueItems {
		twice("uniqueItems", func(int) string { return "" })
	}
	if t := s.XListType; t != nil && *t != "atomic" {
		twice("x-kubernetes-list-type", func(last int) string { return fmt.Sprintf("[%d]", last) })
	}
	return rules
}

// addValueRules adds the rules of value validations.
func addValueRules(
	s *structuralschema.Structural, v *valueValidation, add func(name string, breaks breaker),
) {
	without := func(name string, is bool, without func(v *valueValidation)) {
		if is {
			add(name, redrawn(s, without))
		}
	}
	for _, b := range Bounds(v) {
		most := map[string]float64{"maxLength": longest, "maxItems": large, "maxProperties": large}[b.Name]
		without(b.Name, most == 0 || b.Value <= most, func(v *valueValidation) {
			v.Enum, v.Minimum, v.Maximum = nil, nil, nil
			for _, size := range sizesOf(v) {
				*size = nil
			}
			b.Beyond(v)
		})
	}
	_, text := formatPatterns[normalFormat(v.Format)]
	text = text && (s.Type == "string" || s.XIntOrString)
	narrow := s.Type == "integer" && v.Format == "int32" || s.Type == "number" && v.Format == "float"
	without("format", text || narrow, func(v *valueValidation) { v.Format, v.Enum = "", nil })
	without("pattern", v.Pattern != "", func(v *valueValidation) { v.Pattern, v.Enum = "", nil })
	without("multipleOf", v.MultipleOf != nil, func(v *valueValidation) { v.MultipleOf, v.Enum = nil, nil })
	without("enum", len(v.Enum) > 0, func(v *valueValidation) { v.Enum = nil })
	types := s.XIntOrString && len(v.AllOf) == 1 && bothTypes(v.AllOf[0].AnyOf)
	without("allOf", len(v.AllOf) > 0 && !types, func(v *valueValidation) { v.AllOf = nil })
	types = s.XIntOrString && bothTypes(v.AnyOf)
	without("anyOf", len(v.AnyOf) > 0 && !types, func(v *valueValidation) { v.AnyOf = nil })
	without("oneOf", len(v.OneOf) > 0, func(v *valueValidation) { v.OneOf = nil })
	without("not", v.Not != nil, func(v *valueValidation) { v.Not = nil })
}

// redrawn breaks a rule by a value of a schema without it. Half of the scalars obey no other rules
// either: there may be no value that breaks only this one.
func redrawn(s *structuralschema.Structural, without func(v *valueValidation)) breaker {
	compiled := func(v valueValidation) func() *node {
		return sync.OnceValue(func() *node {
			without(&v)
			bare := *s
			bare.ValueValidation = &v
			return (&compiler{memo: map[string]*node{}}).compile("", &bare, false)
		})
	}
	other := compiled(*s.ValueValidation)
	nodes := []func() *node{other, other}
	if s.Type != "object" && s.Type != "array" {
		nodes[1] = compiled(valueValidation{})
	}
	return func(value any, draw uint64) (any, string, bool) {
		next := random(draw, 0, float64(scatter(draw, 2)%4)/4)
		made, err := newMaker(next).value(nodes[scatter(draw, 3)%2](), &choice{}, nil)
		if err != nil || made == nil {
			return nil, "", false
		}
		if old, ok := value.(map[string]any); ok && s.XEmbeddedResource {
			for name := range old {
				if isMeta(name) {
					made.(map[string]any)[name] = old[name]
				}
			}
		}
		return made, "", true
	}
}

// repeated makes the last element of a list the same as its first, and adds one if it may.
func repeated(s *structuralschema.Structural, path func(last int) string) breaker {
	return func(value any, _ uint64) (any, string, bool) {
		list, _ := value.([]any)
		if len(list) == 0 {
			return nil, "", false
		}
		if v := s.ValueValidation; v == nil || len(list) < limit(v.MaxItems, math.MaxInt32) {
			list = append(list, nil)
		}
		last := len(list) - 1
		list[last] = runtime.DeepCopyJSONValue(list[0])
		return list, path(last), last > 0
	}
}

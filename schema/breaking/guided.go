package breaking

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/internal/shrink"
)

// To prove a change, an object is edited until it shows the change: where the errors of the old
// definition are, or at the place of the change if the old definition accepts it. An edit sets or
// removes a field that a CEL rule there mentions, or sets it to a string that the rule compares.

// candidate is an object to go on with, and what was found about it.
type candidate struct {
	object map[string]any
	verdict
	size int
}

// guided changes an object until it shows a change.
func (s *search) guided(c *change, object map[string]any, tries int) verdict {
	return s.explore(c, object, tries, candidate.broken).verdict
}

// repair changes an object until the old definition accepts it. It returns nil if it finds none.
func (s *search) repair(c *change, object map[string]any) map[string]any {
	return s.explore(c, object, guidedTries, func(at candidate) bool {
		return len(at.refused) == 0 && len(placesOf(at.object, c.steps)) > 0
	}).object
}

// explore judges an object and changed copies of it, the most promising first, and returns the first that is wanted.
func (s *search) explore(c *change, object map[string]any, tries int, wanted func(candidate) bool) (found candidate) {
	s.left = tries
	seen := map[string]bool{}
	var open []candidate
	visit := func(object map[string]any) bool {
		text, _ := json.Marshal(object) // what was JSON is JSON
		if seen[string(text)] {
			return false
		}
		seen[string(text)] = true
		at := candidate{object, s.shows(c, object), len(text)}
		if wanted(at) {
			found = at
			return true
		}
		i, _ := slices.BinarySearchFunc(open, at, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(len(a.refused), len(b.refused)), cmp.Compare(a.size, b.size), -1)
		})
		open = slices.Insert(open, i, at)
		return false
	}
	if object == nil || visit(object) {
		return found
	}
	for len(open) > 0 {
		at := open[0]
		open = open[1:]
		for _, next := range s.edits(c, at.object, at.verdict) {
			if s.left <= 0 || s.ended() || visit(next) {
				return found
			}
		}
	}
	return found
}

// edits returns changed copies of an object.
func (s *search) edits(c *change, object map[string]any, v verdict) (all []map[string]any) {
	add := func(keys []any, steps []string, schema *structuralschema.Structural, rules, validation string) {
		e := &editor{s, rules, validation}
		place := shrink.At(object, keys)
		for _, value := range e.variants(place, schema, steps, 4) {
			all = append(all, shrink.Replace(runtime.DeepCopyJSON(object), keys, runtime.DeepCopyJSONValue(value)).(map[string]any))
		}
	}
	errs, schema := v.refused, s.was.structural
	if len(errs) == 0 {
		errs, schema = v.others, s.is.structural
	}
	visited := map[string]bool{}
	for _, err := range inOrder(errs) {
		keys, steps, at := locate(object, schema, errorPath(err))
		if !visited[pathOf(steps)] && len(visited) < 3 {
			visited[pathOf(steps)] = true
			values := structuralschema.Structural{ValueValidation: at.ValueValidation}
			add(keys, steps, at, rulesHere(at)+c.rule, jsonOf(values.ToKubeOpenAPI()))
		}
	}
	if len(v.refused) == 0 {
		if places := placesOf(object, c.steps); len(places) > 0 {
			_, _, at := locate(object, s.was.structural, places[0].path)
			add(places[0].keys, c.steps, at, c.rule, "")
		}
	}
	return all
}

// locate finds the value at a path with dots alone, or the nearest one around it, with the steps
// and the schema there.
func locate(value any, s *structuralschema.Structural, path string) (keys []any, steps []string, at *structuralschema.Structural) {
	at = s
	names := strings.Split(path, ".")
	for len(names) > 0 {
		var key any
		step, n := "", 0
		var next *structuralschema.Structural
		switch v := value.(type) {
		case map[string]any:
			for n = 1; n <= len(names); n++ { // keys of maps may have dots
				name := strings.Join(names[:n], ".")
				if child, ok := v[name]; ok {
					if key, value, next, step = name, child, propertyOf(at, name), name; !declares(at, name) {
						step = anyValue
					}
					break
				}
			}
		case []any:
			if i, err := strconv.Atoi(names[0]); err == nil && i < len(v) {
				key, value, next, step, n = i, v[i], itemsOf(at), anyItem, 1
			}
		}
		if next == nil {
			break
		}
		keys, steps, at, names = append(keys, key), append(steps, step), next, names[n:]
	}
	return keys, steps, at
}

// rulesHere returns the rules of a value, without those inside of it, with their paths and the expressions of their
// messages.
func rulesHere(s *structuralschema.Structural) string {
	var text strings.Builder
	for _, rule := range s.XValidations {
		fmt.Fprintln(&text, rule.Rule, rule.MessageExpression, rule.FieldPath)
	}
	return text.String()
}

// editor makes other values of a value.
type editor struct {
	*search
	rules string // mention what is changed
	// validation is that of the value as JSON, which has the names of fields.
	validation string
}

var word = regexp.MustCompile(`\.(\w+)`)
var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// names returns the fields that the rules and the validation mention.
func (e *editor) names() map[string]bool {
	names := map[string]bool{}
	for _, match := range word.FindAllStringSubmatch(e.rules, -1) {
		names[generate.FieldName(match[1])] = true
	}
	for _, text := range quoted.FindAllString(e.validation, -1) {
		names[text[1:len(text)-1]] = true
	}
	return names
}

// variants returns other values of a place, which differ from it down to a depth.
func (e *editor) variants(value any, s *structuralschema.Structural, steps []string, depth int) []any {
	if depth == 0 {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		return e.objects(v, s, steps, depth)
	case []any:
		return e.lists(v, s, steps, depth)
	}
	return e.values(s, steps)
}

// objects returns copies of an object with another value of one field. Fields that the rules mention
// are also added and removed.
func (e *editor) objects(object map[string]any, s *structuralschema.Structural, steps []string, depth int) (all []any) {
	with := func(name string, values ...any) {
		for _, value := range values {
			other := maps.Clone(object)
			other[name] = value
			all = append(all, other)
		}
	}
	mentioned := e.names()
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at := s.Properties[name], below(steps, name)
		child, has := object[name]
		switch {
		case len(steps) == 0 && isMeta(name) && !(name == "metadata" && mentioned[name]):
		case has:
			if mentioned[name] {
				other := maps.Clone(object)
				delete(other, name)
				all = append(all, other)
			}
			with(name, e.variants(child, &p, at, depth-1)...)
		case mentioned[name]:
			values := e.values(&p, at)
			with(name, values...)
			if len(values) > 0 {
				if least, ok := values[0].(map[string]any); ok {
					with(name, e.variants(least, &p, at, depth-1)...)
				}
			}
		}
	}
	if values := undeclared(s); values != nil && s.AdditionalProperties != nil {
		at := below(steps, anyValue)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !declares(s, name) {
				with(name, e.variants(object[name], values, at, depth-1)...)
			}
		}
		for _, least := range e.values(values, at) {
			for _, name := range e.strings() {
				with(name, least)
			}
		}
	}
	return all
}

// lists returns copies of a list with another value of one item, with one more, or without the last.
func (e *editor) lists(list []any, s *structuralschema.Structural, steps []string, depth int) (all []any) {
	items, at := itemsOf(s), below(steps, anyItem)
	for i := range list[:min(2, len(list))] {
		for _, value := range e.variants(list[i], items, at, depth-1) {
			other := slices.Clone(list)
			other[i] = value
			all = append(all, other)
		}
	}
	for _, value := range e.values(items, at) {
		all = append(all, append(slices.Clone(list), value))
	}
	if n := len(list); n > 0 {
		for _, size := range e.numbers() {
			all = append(all, slices.Repeat(list[:1], int(min(max(size, 0), maxSize))))
		}
		all = append(all, append(slices.Clone(list), list[n-1]), slices.Clone(list[:n-1]))
	}
	return all
}

// values returns values of a schema, the least one first.
func (e *editor) values(s *structuralschema.Structural, steps []string) (all []any) {
	path := pathOf(steps)
	least, known := e.made[path]
	if !known {
		least = leastOf(s)
		e.made[path] = least
	}
	if least != nil {
		all = append(all, least)
	}
	switch enum := validationOrNone(s.ValueValidation).Enum; {
	case len(enum) > 0:
		for _, v := range enum[:min(16, len(enum))] {
			all = append(all, v.Object)
		}
	case s.Type == "string":
		for _, text := range e.strings() {
			all = append(all, text)
		}
	case s.Type == "boolean":
		all = append(all, true, false)
	case s.Type == "integer", s.Type == "number", s.XIntOrString:
		for _, n := range append([]int64{0, 1, 2}, e.numbers()...) {
			all = append(all, n)
		}
	}
	return all
}

// strings returns the strings in the rules, those with the next number, such as a longer duration, and strings of as
// many characters as the rules have numbers.
func (e *editor) strings() (all []string) {
	for _, text := range quoted.FindAllString(e.rules, -1) {
		text = text[1 : len(text)-1]
		next := digits.ReplaceAllStringFunc(text, func(n string) string {
			i, _ := strconv.Atoi(n)
			return strconv.Itoa(i + 1)
		})
		for _, text := range []string{text, next} {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	all = append(all, "x")
	for _, n := range e.numbers() {
		all = append(all, strings.Repeat("x", int(min(max(n, 0), maxSize))))
	}
	return all
}

// maxSize is up to which size strings and lists are made because a rule has the number.
const maxSize = 300

var number = regexp.MustCompile(`\b\d{1,18}\b`)
var digits = regexp.MustCompile(`\d{1,18}`)

// numbers returns the numbers in the rules, but not in strings, and those next to them.
func (e *editor) numbers() (all []int64) {
	for _, text := range number.FindAllString(quoted.ReplaceAllString(e.rules, ""), -1) {
		n, _ := strconv.ParseInt(text, 10, 64) // it has few digits
		for _, n := range []int64{n + 1, n, n - 1} {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// leastOf returns the least value of a schema, or nil if there is none.
func leastOf(s *structuralschema.Structural) any {
	whole := &structuralschema.Structural{Properties: map[string]structuralschema.Structural{"x": *s}}
	validationOf(whole).Required = []string{"x"}
	return leastObject(runtimeschema.GroupVersionKind{Version: "v1", Kind: "X"}, whole)["x"]
}

// leastObject returns the smallest object that a schema accepts, or nil if no object can be made.
func leastObject(kind runtimeschema.GroupVersionKind, s *structuralschema.Structural) map[string]any {
	g, err := generate.New(kind, s, nil)
	if err != nil {
		return nil
	}
	object, _ := g.Object(choices.Replay(nil)) // nil with an error
	return object
}

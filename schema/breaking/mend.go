package breaking

import (
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
	"github.com/crdkit/crdkit/internal/generate"
)

// The least object with something at a place is often refused by a CEL rule: a type must
// say which of several fields is there, a reference to a Service needs a port, the items of
// a list must differ. So it is changed step by step, around the place, towards fewer
// errors.

const (
	// mendTries bounds how many objects are looked at for that, mendSteps how many changes
	// are made to one of them.
	mendTries, mendSteps = 120, 5
)

// mender mends one object.
type mender struct {
	*search
	levels []level
	left   int // tries
}

// level is what is around a place, or in it.
type level struct {
	steps  []string
	fixed  string // the field on the way to the place, which stays
	schema *structuralschema.Structural
}

// mend returns an object that the old definition accepts, or nil. It is like another one,
// and the same at the place that steps lead to.
func (s *search) mend(object map[string]any, steps []string) map[string]any {
	errs := s.refusals(object)
	if errs == 0 {
		return object
	}
	m := &mender{search: s, left: mendTries}
	at := s.was.structural
	for i := 0; i <= len(steps) && at != nil; i++ {
		l := level{steps: steps[:i], schema: at}
		if i < len(steps) {
			l.fixed = steps[i]
			at = stepInto(at, steps[i])
		} else if at.Items != nil {
			m.levels = append(m.levels, l)
			l = level{steps: below(steps, anyItem), schema: at.Items}
		}
		m.levels = append(m.levels, l)
	}
	slices.Reverse(m.levels) // what is near is tried first
	return m.toward(object, errs, mendSteps)
}

func stepInto(s *structuralschema.Structural, step string) *structuralschema.Structural {
	switch step {
	case anyItem:
		return itemsOf(s)
	case anyValue:
		return undeclared(s)
	}
	return propertyOf(s, step)
}

// refusals is how many errors the old definition has for an object.
func (s *search) refusals(object map[string]any) int {
	_, errs := s.store(s.was, object)
	return len(errs)
}

// toward makes changes while the errors become fewer. It takes back those that lead
// nowhere.
func (m *mender) toward(object map[string]any, errs, steps int) map[string]any {
	if steps == 0 {
		return nil
	}
	type try struct {
		object map[string]any
		errs   int
	}
	var better []try
	for _, l := range m.levels {
		for _, change := range m.changes(l) {
			if m.left--; m.left < 0 || m.over() {
				return nil
			}
			changed := runtime.DeepCopyJSON(object)
			for i, p := range placesOf(changed, l.steps) {
				change(p.value, i)
			}
			switch n := m.refusals(changed); {
			case n == 0:
				return changed
			case n < errs:
				better = append(better, try{changed, n})
			}
		}
	}
	slices.SortStableFunc(better, func(a, b try) int { return a.errs - b.errs })
	for _, t := range better {
		if out := m.toward(t.object, t.errs, steps-1); out != nil {
			return out
		}
	}
	return nil
}

// changes returns what may be done to the objects of a level: other values of enums and
// booleans, fields of which rules speak, and values that differ from one item to the next.
func (m *mender) changes(l level) (all []func(value any, i int)) {
	for _, name := range slices.Sorted(maps.Keys(l.schema.Properties)) {
		p := l.schema.Properties[name]
		if name == l.fixed || len(l.steps) == 0 && isMeta(name) {
			continue
		}
		set := func(value any) {
			all = append(all, func(object any, _ int) {
				if object, ok := object.(map[string]any); ok {
					object[name] = runtime.DeepCopyJSONValue(value)
				}
			})
		}
		for _, v := range orNone(p.ValueValidation).Enum {
			set(v.Object)
		}
		if p.Type == "boolean" {
			set(true)
			set(false)
		}
		if m.rules.mention(name) && len(orNone(p.ValueValidation).Enum) == 0 && p.Type != "boolean" {
			if value, ok := m.leastValue(&p); ok {
				set(value)
			}
		}
		if n := len(l.steps); n > 0 && l.steps[n-1] == anyItem {
			all = append(all, func(object any, i int) { number(object, name, i) })
		}
	}
	return all
}

// number makes a field differ from that of other items.
func number(object any, name string, i int) {
	fields, ok := object.(map[string]any)
	if !ok {
		return
	}
	switch value := fields[name].(type) {
	case string:
		fields[name] = value + strings.Repeat("a", i)
	case int64:
		fields[name] = value + int64(i)
	}
}

// leastValue returns the least value of a schema.
func (s *search) leastValue(of *structuralschema.Structural) (any, bool) {
	const name = "value"
	part := portion{wanted: func(string) bool { return false }}.part(of, nil)
	part.Nullable = false
	whole := &structuralschema.Structural{Properties: map[string]structuralschema.Structural{name: *part}}
	whole.Type = "object"
	validationOf(whole).Required = []string{name}
	g, err := generate.New(s.was.gvk(), whole, nil)
	if err != nil {
		return nil, false
	}
	object, err := g.Object(draw.Replay(nil))
	return object[name], err == nil
}

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

// The smallest object with something at a place is often refused by a CEL rule: a type must
// agree with the field that is there, a reference to a Service needs a port, the items of a list
// must differ. Such an object is repaired: fields around the place are changed, one after the
// other, as long as the errors become fewer.

const (
	// repairTries is how many objects are validated for one repair, and repairChanges how many
	// changes are made to one of them.
	repairTries, repairChanges = 120, 5
)

// repairer repairs one object.
type repairer struct {
	*search
	levels    []level
	triesLeft int
}

// level is an object on the way to a place, the place itself, or its items.
type level struct {
	steps  []string
	fixed  string // the field on the way to the place, which stays
	schema *structuralschema.Structural
}

// repair returns an object that the old definition accepts, or nil. It is like the given one,
// and the same at the place that steps lead to.
func (s *search) repair(object map[string]any, steps []string) map[string]any {
	errs := s.countErrors(object)
	if errs == 0 {
		return object
	}
	r := &repairer{search: s, triesLeft: repairTries}
	at := s.was.structural
	for i := 0; i <= len(steps) && at != nil; i++ {
		l := level{steps: steps[:i], schema: at}
		if i < len(steps) {
			l.fixed = steps[i]
			at = stepInto(at, steps[i])
		} else if at.Items != nil {
			r.levels = append(r.levels, l)
			l = level{steps: below(steps, anyItem), schema: at.Items}
		}
		r.levels = append(r.levels, l)
	}
	slices.Reverse(r.levels) // what is near is tried first
	return r.repair(object, errs, repairChanges)
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

// repair makes changes while the errors become fewer, and takes back those that lead nowhere.
func (r *repairer) repair(object map[string]any, errs, changes int) map[string]any {
	if changes == 0 {
		return nil
	}
	type candidate struct {
		object map[string]any
		errs   int
	}
	var better []candidate
	for _, l := range r.levels {
		for _, change := range r.changes(l) {
			if r.triesLeft--; r.triesLeft < 0 || r.timeIsUp() {
				return nil
			}
			changed := runtime.DeepCopyJSON(object)
			for i, p := range placesOf(changed, l.steps) {
				if object, ok := p.value.(map[string]any); ok {
					change(object, i)
				}
			}
			switch n := r.countErrors(changed); {
			case n == 0:
				return changed
			case n < errs:
				better = append(better, candidate{changed, n})
			}
		}
	}
	slices.SortStableFunc(better, func(a, b candidate) int { return a.errs - b.errs })
	for _, c := range better {
		if repaired := r.repair(c.object, c.errs, changes-1); repaired != nil {
			return repaired
		}
	}
	return nil
}

// changes returns changes of the objects of a level, which are numbered: other
// values of enums and booleans, fields that rules mention, and values that differ from one item
// to the next.
func (r *repairer) changes(l level) (all []func(object map[string]any, i int)) {
	for _, name := range slices.Sorted(maps.Keys(l.schema.Properties)) {
		p := l.schema.Properties[name]
		if name == l.fixed || len(l.steps) == 0 && isMeta(name) {
			continue
		}
		var values []any
		for _, v := range validationOrNone(p.ValueValidation).Enum {
			values = append(values, v.Object)
		}
		switch {
		case p.Type == "boolean":
			values = append(values, true, false)
		case len(values) == 0 && r.mentioned(name):
			if value, ok := r.leastValue(&p); ok {
				values = append(values, value)
			}
		}
		for _, value := range values {
			all = append(all, func(object map[string]any, _ int) { object[name] = runtime.DeepCopyJSONValue(value) })
		}
		if n := len(l.steps); n > 0 && l.steps[n-1] == anyItem {
			all = append(all, func(object map[string]any, i int) { makeDistinct(object, name, i) })
		}
	}
	return all
}

// makeDistinct makes a field differ from that of other items.
func makeDistinct(object map[string]any, name string, i int) {
	switch value := object[name].(type) {
	case string:
		object[name] = value + strings.Repeat("a", i)
	case int64:
		object[name] = value + int64(i)
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
	g, err := generate.New(s.was.gvk, whole, nil)
	if err != nil {
		return nil, false
	}
	object, err := g.Object(draw.Replay(nil))
	return object[name], err == nil
}

package equivalence

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/shrink"
)

// editor changes objects in one place.
type editor struct {
	random        *rand.Rand
	rules, bounds []hint
	others        []map[string]any // have what an object lacks
}

// pick returns one of several values.
func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// edit returns an object with one or two changes.
func (e *editor) edit(object map[string]any) map[string]any {
	object = runtime.DeepCopyJSON(object)
	for range 1 + e.random.IntN(4)/3 {
		for range 10 { // until something changes
			if e.change(object) {
				break
			}
		}
	}
	return object
}

// editStatus returns an object with another status, perhaps that of another object with one or two changes.
func (e *editor) editStatus(object map[string]any) map[string]any {
	statuses := *e
	statuses.others = nil
	for _, other := range append([]map[string]any{object}, e.others...) {
		if status, ok := other["status"].(map[string]any); ok {
			statuses.others = append(statuses.others, map[string]any{"status": status})
		}
	}
	object = maps.Clone(object)
	if len(statuses.others) > 0 {
		from := statuses.others[0]
		if object["status"] == nil || e.random.IntN(4) == 0 {
			from = pick(e.random, statuses.others)
		}
		object["status"] = statuses.edit(from)["status"]
	}
	return object
}

func (e *editor) change(object map[string]any) bool {
	all := places(object)
	var h hint
	switch n := e.random.IntN(6); {
	case n < 3 && len(e.rules) > 0:
		h = pick(e.random, e.rules)
	case n == 3 && len(e.bounds) > 0:
		h = pick(e.random, e.bounds)
	}
	here := h.of(all)
	if len(here) == 0 || e.random.IntN(4) == 0 {
		return e.copyFrom(object, h)
	}
	at := pick(e.random, here)
	value := shrink.At(object, at)
	set := func(value any) bool {
		shrink.Replace(object, at, runtime.DeepCopyJSONValue(value))
		return true
	}
	if list, ok := value.([]any); ok && e.random.IntN(2) == 0 {
		return set(e.resize(list, e.sizes(h, at)))
	}
	switch e.random.IntN(4) {
	case 0:
		return remove(object, at)
	case 1: // of another field
		alike := slices.DeleteFunc(all, func(other []any) bool { return !sameType(shrink.At(object, other), value) })
		return set(shrink.At(object, pick(e.random, alike)))
	}
	if values := slices.DeleteFunc(slices.Clone(h.values), func(v any) bool { return !sameType(v, value) }); len(values) > 0 {
		next := pick(e.random, values)
		if text, ok := value.(string); ok && e.random.IntN(2) == 0 {
			return set(pick(e.random, []string{text + next.(string), next.(string) + text, text + next.(string) + "a"}))
		}
		return set(next)
	}
	switch v := value.(type) {
	case string:
		return set(pick(e.random, []string{"", "a", v + "x", v[:len(v)/2]}))
	case bool:
		return set(!v)
	case int64:
		return set(pick(e.random, []int64{0, 1, -1, v + 1, v - 1, v * 10}))
	case float64:
		return set(pick(e.random, []float64{0, -v, v + 1}))
	case []any:
		return set(e.resize(v, e.sizes(h, at)))
	case map[string]any: // such as labels; elsewhere, the server prunes the key
		texts := slices.DeleteFunc(slices.Clone(h.values), func(v any) bool { return !sameType(v, "") })
		if len(texts) > 0 {
			v[pick(e.random, texts).(string)] = pick(e.random, texts)
			return true
		}
	}
	return false
}

// sizes returns the sizes of a hint, or else those of the bounds of a list.
func (e *editor) sizes(h hint, list []any) []int {
	bounds := append([]hint{h}, e.bounds...)
	at := slices.IndexFunc(bounds, func(b hint) bool { return len(b.sizes) > 0 && len(b.of([][]any{list})) > 0 })
	if at < 0 {
		return nil
	}
	return bounds[at].sizes
}

// copyFrom copies a value from another object.
func (e *editor) copyFrom(object map[string]any, h hint) bool {
	var other map[string]any
	var from [][]any
	for range 5 {
		other = pick(e.random, e.others)
		if from = h.of(places(other)); len(from) > 0 {
			break
		}
	}
	if len(from) == 0 {
		return false
	}
	at := pick(e.random, from)
	var in any = object
	for i, key := range at {
		value := runtime.DeepCopyJSONValue(shrink.At(other, at[:i+1]))
		switch v := in.(type) {
		case map[string]any:
			if child, ok := v[key.(string)]; ok && i < len(at)-1 {
				in = child
				continue
			}
			v[key.(string)] = value
		case []any:
			if index := key.(int); index < len(v) && i < len(at)-1 {
				in = v[index]
				continue
			}
			shrink.Replace(object, at[:i], append(v, value))
		}
		return true
	}
	return true
}

// resize returns a list with another number of elements.
func (e *editor) resize(list []any, sizes []int) []any {
	n := len(list)
	if n == 0 {
		return list
	}
	size := pick(e.random, append(slices.Clone(sizes), 0, 1, n-1, n+1, n+1, 2*n))
	if e.random.IntN(50) == 0 {
		size = 200
	}
	out := slices.Clone(list)
	for len(out) < size {
		out = append(out, pick(e.random, list))
	}
	for len(out) > size {
		i := e.random.IntN(len(out))
		out = slices.Delete(out, i, i+1)
	}
	return out
}

// remove removes a value.
func remove(object map[string]any, at []any) bool {
	around, last := at[:len(at)-1], at[len(at)-1]
	switch v := shrink.At(object, around).(type) {
	case map[string]any:
		delete(v, last.(string))
	case []any:
		shrink.Replace(object, around, slices.Delete(slices.Clone(v), last.(int), last.(int)+1))
	}
	return true
}

// places returns where the values of an object are, except for metadata other than labels and annotations.
func places(object map[string]any) (all [][]any) {
	var visit func(value any, at []any)
	visit = func(value any, at []any) {
		if len(at) > 0 && at[0] != "metadata" || len(at) > 1 {
			all = append(all, at)
		}
		switch v := value.(type) {
		case map[string]any:
			for _, name := range sorted(v) {
				switch {
				case len(at) == 0 && (name == "apiVersion" || name == "kind"):
				case len(at) == 1 && at[0] == "metadata" && name != "labels" && name != "annotations":
				default:
					visit(v[name], append(slices.Clip(at), name))
				}
			}
		case []any:
			for i := range v {
				visit(v[i], append(slices.Clip(at), i))
			}
		}
	}
	visit(object, nil)
	return all
}

// of returns the places of the fields of a hint, or all if it has no fields.
func (h hint) of(all [][]any) [][]any {
	if len(h.names) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(at []any) bool {
		var path []string
		for _, key := range at {
			if name, ok := key.(string); ok {
				path = append(path, name)
			}
		}
		n := len(h.within)
		return len(path) < n || !slices.Equal(path[:n], h.within) || !slices.Contains(h.names, path[len(path)-1])
	})
}

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

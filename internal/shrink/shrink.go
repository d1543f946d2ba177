// Package shrink makes a JSON object smaller while a predicate holds.
package shrink

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// longText is how long a string is of which parts are taken away, and how many things are many.
const longText = 16

// shrinker makes an object smaller.
type shrinker struct {
	object map[string]any
	over   func() bool
	keep   func(object map[string]any) bool
}

// Objects makes objects smaller, one after the other, until it is over or none gets smaller. keep reports whether it takes
// the objects, of which one differs from those that it took last. apiVersion and kind are left as they are, and so is an
// object that is nil.
func Objects(objects []map[string]any, over func() bool, keep func(objects []map[string]any) bool) {
	for again := true; again && !over(); {
		again = false
		for i, object := range objects {
			if object == nil {
				continue
			}
			s := &shrinker{object, over, func(object map[string]any) bool {
				next := slices.Clone(objects)
				next[i] = object
				if !keep(next) {
					return false
				}
				objects, again = next, true
				return true
			}}
			s.part(nil)
		}
	}
}

// set replaces the value at a place with another one.
func (s *shrinker) set(keys []any, value any) bool {
	if s.over() || reflect.DeepEqual(At(s.object, keys), value) {
		return false
	}
	object := Replace(runtime.DeepCopyJSON(s.object), keys, runtime.DeepCopyJSONValue(value)).(map[string]any)
	if !s.keep(object) {
		return false
	}
	s.object = object
	return true
}

// part makes the value at a place smaller: as a whole, and then what is in it.
func (s *shrinker) part(keys []any) {
	switch v := At(s.object, keys).(type) {
	case map[string]any:
		s.members(keys)
	case []any:
		s.items(keys)
	case string:
		s.text(keys, v)
	case int64:
		if v == 0 || s.set(keys, int64(0)) || s.set(keys, int64(1)) {
			break
		}
		for v /= 10; v != 0 && s.set(keys, v); v /= 10 {
		}
	case float64:
		s.set(keys, int64(0))
	}
}

func (s *shrinker) members(keys []any) {
	object := func() map[string]any { return At(s.object, keys).(map[string]any) }
	for _, name := range slices.Sorted(maps.Keys(object())) {
		if len(keys) > 0 || !meta(name) {
			without := maps.Clone(object())
			delete(without, name)
			s.set(keys, without)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object())) {
		if len(keys) > 0 || !meta(name) || name == "metadata" {
			s.part(append(slices.Clip(keys), name))
		}
	}
}

func (s *shrinker) items(keys []any) {
	list := func() []any { return At(s.object, keys).([]any) }
	s.alike(keys)
	chunks(len(list()), func(from, to int) bool { return s.set(keys, slices.Delete(slices.Clone(list()), from, to)) })
	if s.alike(keys) {
		return
	}
	for i := range list() {
		s.part(append(slices.Clip(keys), i))
	}
}

func (s *shrinker) text(keys []any, text string) {
	if text == "" {
		return
	}
	for _, short := range []string{"", "a", strings.Repeat("a", len([]rune(text)))} {
		if s.set(keys, short) {
			break
		}
	}
	if len(text) < longText {
		return
	}
	now := func() []rune { return []rune(At(s.object, keys).(string)) }
	chunks(len(now()), func(from, to int) bool { return s.set(keys, string(slices.Delete(now(), from, to))) })
}

// alike gives the items of a list the shortest strings, or one of their fields: the same ones, or others
// for each item. It reports whether the items themselves are strings.
func (s *shrinker) alike(keys []any) bool {
	list := At(s.object, keys).([]any)
	if len(list) == 0 {
		return false
	}
	switch item := list[0].(type) {
	case string:
		return slices.ContainsFunc(shortest(len(list)), func(texts []any) bool { return s.set(keys, texts) })
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(item)) {
			if _, text := item[name].(string); !text {
				continue
			}
			for _, texts := range shortest(len(list)) {
				with := runtime.DeepCopyJSONValue(list).([]any)
				for i, text := range texts {
					if fields, ok := with[i].(map[string]any); ok {
						fields[name] = text
					}
				}
				if s.set(keys, with) {
					list = with
					break
				}
			}
		}
	}
	return false
}

// chunks calls remove with ranges of n things, large ones and those at the end first. remove reports
// whether they are gone. If neither half of many things nor the last one can go, nothing else is tried.
func chunks(n int, remove func(from, to int) bool) {
	if n > longText {
		switch {
		case remove(n/2, n):
			n /= 2
		case remove(n-1, n):
			n--
		default:
			return
		}
	}
	for size := n; size > 0; size /= 2 {
		for to := n; to > 0; to -= size {
			if from := max(0, to-size); remove(from, to) {
				n -= to - from
			}
		}
	}
}

// shortest returns lists of n strings: the same ones, and the shortest that differ.
func shortest(n int) [][]any {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	different := make([]any, n)
	for i := range n {
		text := ""
		for k := i; k > 0; k /= len(letters) {
			text += string(letters[k%len(letters)])
		}
		different[i] = text
	}
	return [][]any{slices.Repeat([]any{""}, n), slices.Repeat([]any{"a"}, n), different}
}

func meta(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// At returns the value at a place, which has the names of members (string) and the indexes of items (int).
func At(value any, keys []any) any {
	for _, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			value = v[key.(string)]
		case []any:
			value = v[key.(int)]
		}
	}
	return value
}

// Replace sets the value at a place, and returns the whole.
func Replace(in any, keys []any, value any) any {
	if len(keys) == 0 {
		return value
	}
	switch v := in.(type) {
	case map[string]any:
		v[keys[0].(string)] = Replace(v[keys[0].(string)], keys[1:], value)
	case []any:
		v[keys[0].(int)] = Replace(v[keys[0].(int)], keys[1:], value)
	}
	return in
}

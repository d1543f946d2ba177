package roundtrip

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// sameValue says whether two Go values are equal as [equality.Semantic] has it, unexported
// fields included. What is nil differs from what is empty only if it is strict. It is
// several times faster than equality.Semantic, because it looks at each type once.
func sameValue(a, b any, strict bool) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Type() == y.Type() && equalityOf(x.Type())(x, y, strict)
}

// equalFunc compares two values of one type.
type equalFunc func(a, b reflect.Value, strict bool) bool

// equalFuncs are cached by type.
var equalFuncs sync.Map

func equalityOf(t reflect.Type) equalFunc {
	if f, ok := equalFuncs.Load(t); ok {
		return f.(equalFunc)
	}
	// A type may contain itself: until there is the right function, another one waits.
	var f equalFunc
	var wait sync.WaitGroup
	wait.Add(1)
	if early, found := equalFuncs.LoadOrStore(t, equalFunc(func(a, b reflect.Value, strict bool) bool {
		wait.Wait()
		return f(a, b, strict)
	})); found {
		return early.(equalFunc)
	}
	f = newEquality(t)
	wait.Done()
	equalFuncs.Store(t, f)
	return f
}

func newEquality(t reflect.Type) equalFunc {
	byKind := equalityByKind(t)
	var special equalFunc
	switch t {
	case reflect.TypeFor[time.Time]():
		special = func(a, b reflect.Value, _ bool) bool { return pointerTo[time.Time](a).Equal(*pointerTo[time.Time](b)) }
	case reflect.TypeFor[resource.Quantity]():
		special = func(a, b reflect.Value, _ bool) bool {
			return pointerTo[resource.Quantity](a).Cmp(*pointerTo[resource.Quantity](b)) == 0
		}
	default:
		f, ok := equality.Semantic.Equalities[t]
		if !ok || isTime(t) {
			return byKind
		}
		special = func(a, b reflect.Value, _ bool) bool {
			if t.Kind() == reflect.Interface && (a.IsNil() || b.IsNil()) {
				return a.IsNil() == b.IsNil()
			}
			return f.Call([]reflect.Value{a, b})[0].Bool()
		}
	}
	return func(a, b reflect.Value, strict bool) bool {
		if !a.CanInterface() || !b.CanInterface() { // of an unexported field
			return byKind(a, b, strict)
		}
		return special(a, b, strict)
	}
}

// isTime says whether a type is [time.Time] and no more: equality.Semantic has functions
// for such types, and they do the same.
func isTime(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == reflect.TypeFor[time.Time]()
}

// pointerTo returns a pointer to a value, or to a copy of it.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	return new(v.Interface().(T))
}

func equalityByKind(t reflect.Type) equalFunc {
	switch t.Kind() {
	case reflect.Bool:
		return func(a, b reflect.Value, _ bool) bool { return a.Bool() == b.Bool() }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(a, b reflect.Value, _ bool) bool { return a.Int() == b.Int() }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return func(a, b reflect.Value, _ bool) bool { return a.Uint() == b.Uint() }
	case reflect.Float32, reflect.Float64:
		return func(a, b reflect.Value, _ bool) bool { return a.Float() == b.Float() }
	case reflect.Complex64, reflect.Complex128:
		return func(a, b reflect.Value, _ bool) bool { return a.Complex() == b.Complex() }
	case reflect.String:
		return func(a, b reflect.Value, _ bool) bool { return a.String() == b.String() }
	case reflect.Interface:
		return func(a, b reflect.Value, strict bool) bool {
			if a.IsNil() || b.IsNil() {
				return a.IsNil() == b.IsNil()
			}
			a, b = a.Elem(), b.Elem()
			return a.Type() == b.Type() && equalityOf(a.Type())(a, b, strict)
		}
	case reflect.Pointer:
		elem := equalityOf(t.Elem())
		return func(a, b reflect.Value, strict bool) bool {
			if a.IsNil() || b.IsNil() {
				return a.IsNil() == b.IsNil()
			}
			return elem(a.Elem(), b.Elem(), strict)
		}
	case reflect.Struct:
		all := make([]equalFunc, t.NumField())
		for i := range all {
			all[i] = equalityOf(t.Field(i).Type)
		}
		return func(a, b reflect.Value, strict bool) bool {
			for i, equal := range all {
				if !equal(a.Field(i), b.Field(i), strict) {
					return false
				}
			}
			return true
		}
	case reflect.Array:
		elem := equalityOf(t.Elem())
		return func(a, b reflect.Value, strict bool) bool { return equalElements(a, b, strict, elem) }
	case reflect.Slice:
		elem := equalityOf(t.Elem())
		ofBytes := t.Elem().Kind() == reflect.Uint8
		return func(a, b reflect.Value, strict bool) bool {
			switch {
			case a.Len() != b.Len() || strict && a.IsNil() != b.IsNil():
				return false
			case ofBytes:
				return bytes.Equal(a.Bytes(), b.Bytes())
			}
			return equalElements(a, b, strict, elem)
		}
	case reflect.Map:
		elem := equalityOf(t.Elem())
		ofStrings := t == reflect.TypeFor[map[string]string]()
		return func(a, b reflect.Value, strict bool) bool {
			if ofStrings && !strict && a.CanInterface() && b.CanInterface() {
				return maps.Equal(a.Interface().(map[string]string), b.Interface().(map[string]string))
			}
			if a.Len() != b.Len() || strict && a.IsNil() != b.IsNil() {
				return false
			}
			for key, value := range a.Seq2() {
				other := b.MapIndex(key)
				if !other.IsValid() || !elem(value, other, strict) {
					return false
				}
			}
			return true
		}
	default: // functions, channels: they are equal if there are none
		return func(a, b reflect.Value, _ bool) bool { return a.IsZero() && b.IsZero() }
	}
}

func equalElements(a, b reflect.Value, strict bool, elem equalFunc) bool {
	for i := range a.Len() {
		if !elem(a.Index(i), b.Index(i), strict) {
			return false
		}
	}
	return true
}

// differ returns how two objects differ that are not the same: by their JSON, or by what
// that does not show.
func differ(want, got runtime.Object, strict bool) *failure {
	wanted, errWant := json.Marshal(want)
	text, errGot := json.Marshal(got)
	if errWant == nil && errGot == nil {
		if f := compare(wanted, text); f != nil {
			return f
		}
	}
	return differValues(want, got, strict)
}

func differValues(want, got runtime.Object, strict bool) *failure {
	return &failure{diff: func() string {
		w, g := reflect.ValueOf(want), reflect.ValueOf(got)
		if w.Type() != g.Type() {
			return diffTexts(w.Type().String(), g.Type().String())
		}
		var d differences
		d.values("", w, g, strict)
		return d.String()
	}}
}

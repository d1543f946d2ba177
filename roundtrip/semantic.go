package roundtrip

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/dump"
)

// sameValue reports whether two Go values are equal as
// [k8s.io/apimachinery/pkg/api/equality.Semantic] has it, unexported fields included. Unless
// strict, nil equals empty. It is several times faster than equality.Semantic.
func sameValue(a, b any, strict bool) bool {
	return sameReflected(reflect.ValueOf(a), reflect.ValueOf(b), strict)
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

func sameReflected(a, b reflect.Value, strict bool) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameReflected(a.Elem(), b.Elem(), strict)
	case reflect.Struct:
		switch t := a.Type(); {
		case t == timeType && a.CanInterface() && b.CanInterface():
			return pointerTo[time.Time](a).Equal(*pointerTo[time.Time](b))
		case t == quantityType && a.CanInterface() && b.CanInterface():
			return pointerTo[resource.Quantity](a).Cmp(*pointerTo[resource.Quantity](b)) == 0
		}
		for i := range a.NumField() {
			if !sameReflected(a.Field(i), b.Field(i), strict) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() || strict && a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
			return false
		}
		if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Uint8 {
			return bytes.Equal(a.Bytes(), b.Bytes())
		}
		for i := range a.Len() {
			if !sameReflected(a.Index(i), b.Index(i), strict) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() || strict && a.IsNil() != b.IsNil() {
			return false
		}
		for all := a.MapRange(); all.Next(); {
			other := b.MapIndex(all.Key())
			if !other.IsValid() || !sameReflected(all.Value(), other, strict) {
				return false
			}
		}
		return true
	case reflect.Func, reflect.Chan, reflect.UnsafePointer: // JSON has none
		return a.IsZero() && b.IsZero()
	}
	return a.Equal(b)
}

// pointerTo returns a pointer to a value, or to a copy of it.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	return new(v.Interface().(T))
}

// differ returns how two objects differ that are not the same: by their JSON, or by what
// that does not show.
func differ(want, got runtime.Object) *failure {
	wanted, errWant := json.Marshal(want)
	text, errGot := json.Marshal(got)
	if errWant == nil && errGot == nil {
		if f := compare(wanted, text); f != nil {
			return f
		}
	}
	// Now: others may use the memory of the objects again.
	diff := diffTexts(dump.OneLine(want), dump.OneLine(got))
	return &failure{diff: func() string { return diff }}
}

package codec

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// omission returns a function that reports whether a field is left out, or nil if it never is.
func omission(f jsontype.Field) func(p pointer) bool {
	t, empty, zero := f.Type, f.Has("omitempty"), f.Has("omitzero")
	switch {
	case empty && zero:
		isEmpty, isZero := emptyOf(t), zeroOf(t)
		return func(p pointer) bool { return isEmpty(p) || isZero(p) }
	case empty:
		return emptyOf(t)
	case zero:
		return zeroOf(t)
	default:
		return nil
	}
}

// emptyOf returns a function that reports whether a value is empty, as encoding/json defines it.
func emptyOf(t reflect.Type) func(p pointer) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return func(pointer) bool { return false }
	case reflect.Array:
		return func(pointer) bool { return t.Len() == 0 }
	case reflect.Slice:
		return func(p pointer) bool { return at[list](p).len == 0 }
	case reflect.String:
		return func(p pointer) bool { return *at[string](p) == "" }
	case reflect.Map:
		return func(p pointer) bool { return *at[pointer](p) == pointer{} || p.value(t).Len() == 0 }
	default:
		return allZero(t)
	}
}

// zeroOf returns a function that reports whether a value is zero: its method IsZero, if it has one.
func zeroOf(t reflect.Type) func(p pointer) bool {
	type zeroer interface{ IsZero() bool }
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return func(p pointer) bool { return at[metav1.Time](p).IsZero() }
	case t.Implements(reflect.TypeFor[zeroer]()):
		return func(p pointer) bool {
			v := p.value(t)
			if k := v.Kind(); k == reflect.Interface && (v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil()) || k == reflect.Pointer && v.IsNil() {
				return true
			}
			return v.Interface().(zeroer).IsZero()
		}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[zeroer]()):
		return func(p pointer) bool { return p.value(t).Addr().Interface().(zeroer).IsZero() }
	default:
		return allZero(t)
	}
}

// allZero returns a function that reports whether a value is the zero value of its type.
func allZero(t reflect.Type) func(p pointer) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map:
		return func(p pointer) bool { return *at[pointer](p) == pointer{} }
	case reflect.Bool:
		return func(p pointer) bool { return !*at[bool](p) }
	case reflect.Int32:
		return func(p pointer) bool { return *at[int32](p) == 0 }
	case reflect.Int64:
		return func(p pointer) bool { return *at[int64](p) == 0 }
	default:
		return func(p pointer) bool { return p.value(t).IsZero() }
	}
}

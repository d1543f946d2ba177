package codec

import (
	"fmt"
	"reflect"
	"unsafe"
)

// A pointer points to a value whose type each decoder and encoder knows. The field of a
// struct is found by an addition; with reflect, that takes longer than decoding it.
//
// No other file imports unsafe. These rules make it safe:
//
//   - A pointer comes from [pointerTo], which compares the types, once for all that is inside.
//     Others are derived from it with the offsets, sizes and element types that reflect tells.
//   - It is never a number: what it points to lives as long as it does.
//   - [at] is asked for the kind that the type has, or for the type itself. So each store
//     is one of that kind, and the garbage collector sees the pointers in it.
//   - Memory is made by reflect, of the type that is to be in it, and is zero. A list is
//     grown by reflect, and its length is never more than its capacity.
//   - Interfaces, most maps and unusual types are left to reflect, with [pointer.value].
type pointer struct{ p unsafe.Pointer }

// pointerTo returns a pointer to a value, which is addressable and of type t.
func pointerTo(v reflect.Value, t reflect.Type) pointer {
	if v.Type() != t {
		panic(fmt.Sprintf("codec: a %s is given to what was made for %s", v.Type(), t))
	}
	return pointer{v.Addr().UnsafePointer()}
}

// at returns the value that p points to. T is its type, or one without a name that is the same
// in memory: int32, string, pointer, list.
func at[T any](p pointer) *T { return (*T)(p.p) }

// inside returns a pointer to a field of the struct at p.
func (p pointer) inside(offset uintptr) pointer { return pointer{unsafe.Add(p.p, offset)} }

// value returns the value at p, which has type t.
func (p pointer) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.p).Elem() }

// as returns a Go pointer to the value at p, which has type t.
func (p pointer) as(t reflect.Type) any { return reflect.NewAt(t, p.p).Interface() }

// list is any slice; it is nil if first is.
type list struct {
	first    pointer
	len, cap int
}

// elem returns a pointer to an element, which is size bytes long.
func (l *list) elem(i int, size uintptr) pointer { return l.first.inside(uintptr(i) * size) }

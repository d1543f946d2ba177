package codec

import (
	"fmt"
	"reflect"
	"unsafe"
)

// A place is where a value is: a reflect.Value without the type, which each decoder and
// encoder knows. The field of a struct is found by an addition; with reflect, that takes
// longer than decoding what is in it.
//
// No other file imports unsafe. What makes it safe:
//
//   - A place comes from [placeOf], which compares the types, once for all that is inside.
//     Others are made of it with the offsets, sizes and element types that reflect tells.
//   - It is a pointer and never a number: what it points to lives as long as the place, and
//     moves with it.
//   - [at] is asked for the kind that the type has, or for the type itself. So each store
//     is one of that kind, and the garbage collector sees the pointers in it.
//   - Memory is made by reflect, of the type that is to be in it, and is zero. A list is
//     grown by reflect, and its length is never more than its capacity.
//   - Interfaces, most maps and strange types are left to reflect, with [place.value].
type place struct{ p unsafe.Pointer }

// placeOf returns the place of a value, which is addressable and of type t.
func placeOf(v reflect.Value, t reflect.Type) place {
	if v.Type() != t {
		panic(fmt.Sprintf("codec: a %s is given to what was made for %s", v.Type(), t))
	}
	return place{v.Addr().UnsafePointer()}
}

// at returns the value at a place. T is its type, or one without a name that is the same
// in memory: int32, string, pointer, list.
func at[T any](p place) *T { return (*T)(p.p) }

// inside returns the place of a field of the struct at p.
func (p place) inside(offset uintptr) place { return place{unsafe.Add(p.p, offset)} }

// value returns the value at p, which has type t.
func (p place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.p).Elem() }

// pointerTo returns a pointer to the value at p, which has type t.
func (p place) pointerTo(t reflect.Type) any { return reflect.NewAt(t, p.p).Interface() }

// pointer is any pointer, or map; its zero value is nil.
type pointer = place

// list is any slice. That without a first is nil.
type list struct {
	first    place
	len, cap int
}

// elem returns the place of an element, which is size bytes long.
func (l *list) elem(i int, size uintptr) place { return l.first.inside(uintptr(i) * size) }

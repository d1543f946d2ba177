package conversion

import "reflect"

// slab is memory for what the pointers of one type point to. It is used again for the
// next object.
type slab struct {
	values reflect.Value // a slice
	used   int
}

// allocator returns a pointer to a zero value.
type allocator func(w *worker) reflect.Value

// allocator returns the allocator of a type.
func (d *decoders) allocator(t reflect.Type) allocator {
	const some = 8 // a guess of how many an object has; what is more is allocated each time
	id := d.slabs
	d.slabs++
	return func(w *worker) reflect.Value {
		for len(w.slabs) <= id {
			w.slabs = append(w.slabs, slab{})
		}
		s := &w.slabs[id]
		if !s.values.IsValid() {
			s.values = reflect.MakeSlice(reflect.SliceOf(t), some, some)
		}
		if s.used == some {
			return reflect.New(t)
		}
		value := s.values.Index(s.used)
		s.used++
		value.SetZero()
		return value.Addr()
	}
}

package conversion

import "reflect"

// slab is memory for some values of one type. Each is handed out once: a function may
// keep it.
type slab struct {
	values reflect.Value // a slice
	used   int
}

// allocator returns a pointer to a new zero value.
type allocator func(w *worker) reflect.Value

// allocator returns the allocator of a type. Values of a worker share allocations.
func (d *decoders) allocator(t reflect.Type) allocator {
	id := d.slabs
	d.slabs++
	some := int(max(1, min(16, 4096/max(1, t.Size()))))
	return func(w *worker) reflect.Value {
		for len(w.slabs) <= id {
			w.slabs = append(w.slabs, slab{})
		}
		s := &w.slabs[id]
		if !s.values.IsValid() || s.used == some {
			s.values, s.used = reflect.MakeSlice(reflect.SliceOf(t), some, some), 0
		}
		s.used++
		return s.values.Index(s.used - 1).Addr()
	}
}

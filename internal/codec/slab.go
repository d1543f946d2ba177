package codec

import "reflect"

// slab is memory for what the pointers of one type point to.
type slab struct {
	values reflect.Value // a slice
	used   int
}

// allocator returns a pointer to a zero value.
type allocator func(m *Memory) reflect.Value

// allocator returns the allocator of a type.
func (d *decoders) allocator(t reflect.Type) allocator {
	const few, many = 8, 256 // values are allocated at a time
	id := d.slabs
	d.slabs++
	return func(m *Memory) reflect.Value {
		for len(m.slabs) <= id {
			m.slabs = append(m.slabs, slab{})
		}
		s := &m.slabs[id]
		if n := s.values; !n.IsValid() || s.used == n.Len() {
			size := few
			if n.IsValid() {
				size = min(2*n.Len(), many)
			}
			*s = slab{values: reflect.MakeSlice(reflect.SliceOf(t), size, size)}
		}
		value := s.values.Index(s.used)
		s.used++
		value.SetZero()
		return value.Addr()
	}
}

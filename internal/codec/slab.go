package codec

import "reflect"

// slab is memory for what the pointers of one type point to.
type slab struct {
	values reflect.Value // a slice
	typed  any           // or a *[]T
	used   int
}

const few, many = 8, 256 // values are allocated at a time

// allocator returns what returns a pointer to a zero value of a type.
func (d *decoders) allocator(t reflect.Type) func(m *Memory) reflect.Value {
	id := d.newSlab()
	return func(m *Memory) reflect.Value {
		s := m.slab(id)
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

// allocatorOf returns what returns a pointer to some value of a type.
func allocatorOf[T any](d *decoders) func(m *Memory) *T {
	id := d.newSlab()
	return func(m *Memory) *T {
		s := m.slab(id)
		values, _ := s.typed.(*[]T)
		switch {
		case values == nil:
			values = new([]T)
			*values = make([]T, few)
			s.typed = values
		case s.used == len(*values):
			*values = make([]T, min(2*len(*values), many))
			s.used = 0
		}
		s.used++
		return &(*values)[s.used-1]
	}
}

func (d *decoders) newSlab() int {
	d.slabs++
	return d.slabs - 1
}

func (m *Memory) slab(id int) *slab {
	for len(m.slabs) <= id {
		m.slabs = append(m.slabs, slab{})
	}
	return &m.slabs[id]
}

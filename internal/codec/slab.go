package codec

import "reflect"

// slab is memory for what the pointers of one type point to.
type slab struct {
	values reflect.Value // a slice
	list   list          // the same
	used   int
	dirty  int // how many have been used before the memory was reset
	bytes  int // of the memory
}

const few, many = 8, 256 // values are allocated at a time

// allocator returns what returns the place of a zero value of a type. Of a number, string
// or bool it may be any value: their decoders write it, or return an error.
func (d *decoders) allocator(t reflect.Type) func(m *Memory) place {
	id, size := d.slabs, t.Size()
	d.slabs++
	overwritten := (t.Kind() <= reflect.Float64 || t.Kind() == reflect.String) && !DecodesItself(t)
	return func(m *Memory) place {
		for len(m.slabs) <= id {
			m.slabs = append(m.slabs, slab{})
		}
		s := &m.slabs[id]
		if s.used == s.list.len {
			s.renew(t)
		}
		i := s.used
		s.used++
		if i < s.dirty && !overwritten {
			s.values.Index(i).SetZero()
		}
		return s.list.elem(i, size)
	}
}

// renew takes new memory, and leaves the old to the values in it.
func (s *slab) renew(t reflect.Type) {
	n := min(max(few, 2*s.list.len), many)
	values := reflect.MakeSlice(reflect.SliceOf(t), n, n)
	*s = slab{values: values, list: list{placeOf(values.Index(0), t), n, n}, bytes: n * int(t.Size())}
}

// reset makes the memory free for other values.
func (s *slab) reset() { s.dirty, s.used = max(s.dirty, s.used), 0 }

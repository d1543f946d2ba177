package codec

import (
	"bytes"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Arena has the memory and the buffers of the decoders and encoders of one Codecs, in one goroutine. Decoded values share
// allocations of up to 16 KiB, and are never overwritten.
type Arena struct {
	cursor  rawjson.Cursor  // in the object that is decoded
	strings strings.Builder // strings that are decoded
	words   []string        // lists of strings that are decoded
	slabs   []slab          // what pointers point to, by type
	decoded []byte          // a string
	encoded bytes.Buffer    // what encoding/json wrote
	keys    []string        // of a map that is being encoded
	depth   int             // of the value that is being encoded
}

// maxAllocation bounds the bytes that are allocated for several small values.
const maxAllocation = 16 << 10

// intern copies text into a string. Many strings share one allocation.
func (m *Arena) intern(text []byte) string {
	if m.strings.Cap()-m.strings.Len() < len(text) {
		if len(text) > maxAllocation/4 {
			return string(text)
		}
		m.strings = strings.Builder{}
		m.strings.Grow(maxAllocation)
	}
	begin := m.strings.Len()
	m.strings.Write(text)
	return m.strings.String()[begin:]
}

// String decodes the string at the cursor; ok is false if the value is not a string.
func (m *Arena) String(c *rawjson.Cursor) (s string, ok bool) {
	if text, plain := c.Plain(); plain {
		return m.intern(text), true
	}
	m.decoded, ok = c.AppendString(m.decoded[:0])
	return m.intern(m.decoded), ok
}

// Name decodes the name that the cursor is at; ok is false if it is not Unicode.
func (m *Arena) Name(c *rawjson.Cursor) (s string, ok bool) {
	name := c.Name()
	return m.intern(name), utf8.Valid(name)
}

// slab is memory for several values of one type.
type slab struct {
	values    list
	allocated int // of them
}

// allocator returns a function that returns a pointer to a zero value of a type.
func (d *decoders) allocator(t reflect.Type) func(m *Arena) pointer {
	id, size := d.slabs, t.Size()
	d.slabs++
	most := int(min(256, maxAllocation/max(1, size)))
	return func(m *Arena) pointer {
		for len(m.slabs) <= id {
			m.slabs = append(m.slabs, slab{})
		}
		s := &m.slabs[id]
		if s.allocated == s.values.len {
			n := max(1, min(max(8, 2*s.values.len), most))
			values := reflect.MakeSlice(reflect.SliceOf(t), n, n)
			*s = slab{values: list{pointerTo(values.Index(0), t), n, n}}
		}
		s.allocated++
		return s.values.elem(s.allocated-1, size)
	}
}

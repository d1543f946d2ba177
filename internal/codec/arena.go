package codec

import (
	"bytes"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Arena has the buffers of decoders and encoders, and allocates decoded values: several share one
// allocation of up to 16 KiB, and none is overwritten. It is for one Codecs and one goroutine.
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
func (a *Arena) intern(text []byte) string {
	if a.strings.Cap()-a.strings.Len() < len(text) {
		if len(text) > maxAllocation/4 {
			return string(text)
		}
		a.strings = strings.Builder{}
		a.strings.Grow(maxAllocation)
	}
	begin := a.strings.Len()
	a.strings.Write(text)
	return a.strings.String()[begin:]
}

// String decodes the string at the cursor; ok is false if the value is not a string.
func (a *Arena) String(c *rawjson.Cursor) (s string, ok bool) {
	if text, plain := c.Plain(); plain {
		return a.intern(text), true
	}
	a.decoded, ok = c.AppendString(a.decoded[:0])
	return a.intern(a.decoded), ok
}

// Name decodes the name that the cursor is at; ok is false if it is not Unicode.
func (a *Arena) Name(c *rawjson.Cursor) (s string, ok bool) {
	name := c.Name()
	return a.intern(name), utf8.Valid(name)
}

// slab is memory for several values of one type.
type slab struct {
	values    list
	allocated int // of them
}

// allocator returns a function that returns a pointer to a zero value of a type.
func (d *decoders) allocator(t reflect.Type) func(a *Arena) pointer {
	id, size := d.slabs, t.Size()
	d.slabs++
	most := int(min(256, maxAllocation/max(1, size)))
	return func(a *Arena) pointer {
		for len(a.slabs) <= id {
			a.slabs = append(a.slabs, slab{})
		}
		s := &a.slabs[id]
		if s.allocated == s.values.len {
			n := max(1, min(max(8, 2*s.values.len), most))
			values := reflect.MakeSlice(reflect.SliceOf(t), n, n)
			*s = slab{values: list{pointerTo(values.Index(0), t), n, n}}
		}
		s.allocated++
		return s.values.elem(s.allocated-1, size)
	}
}

package conversion

import (
	"fmt"
	"slices"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// request is a ConversionRequest.
type request struct {
	registry *Registry
	memory   codec.Memory
	desired  string // apiVersion
	large    bool
	objects  []object // unless the request is large
	parts    []batch  // if it is
	text     []byte   // of all objects
}

func (r *request) Reset(large bool) {
	r.desired, r.large, r.objects, r.parts, r.text = "", large, r.objects[:0], nil, nil
}

func (r *request) Read(name []byte, c *rawjson.Cursor) error {
	switch string(name) {
	case "desiredAPIVersion":
		r.desired, _ = r.memory.String(c)
	case "objects":
		return r.readObjects(c)
	default:
		c.Value()
	}
	return nil
}

// partSize is the least number of bytes that are converted in one go, where there are more.
const partSize = 32 << 10

// readObjects reads the objects of a small request. It cuts those of a large one into parts, which
// are read only when they are converted, because together they would take many times the memory of
// their text.
func (r *request) readObjects(c *rawjson.Cursor) error {
	r.objects, r.parts, r.text = r.objects[:0], nil, nil
	if c.Begins() == 'n' {
		c.Value()
		return nil
	}
	n, begin := 0, c.Offset()
	for c.Enter('['); c.Next('['); n++ {
		switch {
		case !r.large:
			r.objects = slices.Grow(r.objects, 1)[:n+1]
			r.registry.parseObject(&r.memory, c, &r.objects[n])
		case c.Begins() != '{':
			c.Enter('{') // an error
		default:
			if last := len(r.parts) - 1; last < 0 || len(r.parts[last].list) >= partSize {
				r.parts = append(r.parts, batch{first: n, offset: c.Offset()})
			}
			c.Value()
			part := &r.parts[len(r.parts)-1]
			part.list = c.Since(part.offset)
		}
		if err := c.Err(); err != nil {
			return fmt.Errorf("request.objects[%d]: %w", n, err)
		}
	}
	r.text = c.Since(begin)
	return nil
}

package conversion

import (
	"fmt"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// request is a ConversionRequest.
type request struct {
	registry *Registry
	memory   codec.Memory
	desired  string // apiVersion
	objects  []object
}

func (r *request) Reset() { r.desired, r.objects = "", r.objects[:0] }

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

func (r *request) readObjects(c *rawjson.Cursor) error {
	r.objects = r.objects[:0]
	if c.Begins() == 'n' {
		c.Value()
		return nil
	}
	begin := c.Offset()
	for c.Enter('['); c.Next('['); {
		n := len(r.objects)
		if n < cap(r.objects) {
			r.objects = r.objects[:n+1]
		} else {
			r.objects = append(r.objects, object{})
		}
		r.registry.parseObject(&r.memory, c, &r.objects[n])
		if err := c.Err(); err != nil {
			return fmt.Errorf("request.objects[%d]: %w", n, err)
		}
		// A list of nothing but {} would take many times the memory of its text.
		if size := c.Offset() - begin; n > 10_000+size/100 {
			return fmt.Errorf("request.objects: %d objects in %d bytes, expected larger objects", n+1, size)
		}
	}
	return nil
}

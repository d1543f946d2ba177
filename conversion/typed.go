package conversion

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/lost"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// typed is the representation by a Go type.
type typed struct {
	allocate func(m *codec.Memory) reflect.Value // a pointer to the struct
	decoder  codec.Decoder
	whole    bool // the type has a decoder of its own, and gets the whole object

	// encoder encodes the fields except for metadata. It is nil if the type has its own
	// encoder or unusual fields.
	encoder codec.Encoder
}

// typed returns the representation by a pointer to a struct, the same for the same type.
func (r *Registry) typed(t reflect.Type) *typed {
	t = t.Elem()
	f := r.types[t]
	if f == nil {
		f = &typed{allocate: r.codecs.Allocator(t), decoder: r.codecs.Decoder(t), whole: jsontype.DecodesItself(t)}
		f.encoder, _ = r.codecs.EncoderWithout(t, "apiVersion", "kind", "metadata")
		r.types[t] = f
	}
	return f
}

func (f *typed) decode(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error) {
	value := f.allocate(&c.memory)
	obj := value.Interface().(runtime.Object)
	if f.whole {
		text, err := c.object.append(nil, headOf(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)), p)
		if err != nil {
			return nil, err
		}
		if err := codec.Decode(text, obj); err != nil {
			return nil, err
		}
	} else {
		c.cursor = rawjson.NewCursor(p.Body)
		if err := f.decoder(&c.memory, &c.cursor, value.Elem()); err != nil {
			return nil, err
		}
	}
	setMetadata(obj, t, &c.object.meta, p.Labels, p.Annotations)
	return obj, nil
}

func (f *typed) blank(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error) {
	obj := f.allocate(&c.memory).Interface().(runtime.Object)
	setMetadata(obj, t, &c.object.meta, maps.Clone(p.Labels), maps.Clone(p.Annotations))
	return obj, nil
}

func (f *typed) metadata(c *converter, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error) {
	meta, err := objectMeta(obj)
	if err != nil {
		return nil, nil, err
	}
	if ofType, err := typeMeta(obj); err == nil && *ofType != t {
		*ofType = t
	}
	return meta.Labels, meta.Annotations, checkMetadata(c.before, meta)
}

func (f *typed) encode(c *converter, obj runtime.Object) (_ []byte, err error) {
	if f.encoder != nil {
		c.body, err = f.encoder(&c.memory, c.body[:0], reflect.ValueOf(obj).Elem())
		return c.body, err
	}
	return c.encodeBody(obj)
}

// encodeBody encodes an object with encoding/json, and returns its body.
func (c *converter) encodeBody(obj any) ([]byte, error) {
	text, err := c.memory.Encode(obj)
	if err != nil {
		return nil, err
	}
	c.body, err = lost.AppendBody(c.body[:0], text)
	return c.body, err
}

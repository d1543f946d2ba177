package conversion

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// typed is the form of a Go type.
type typed struct {
	new     allocator
	decoder decoder
	whole   bool // the type has a decoder of its own, and gets the whole object

	// encoder encodes the fields which are not metadata. It is nil where that is not
	// the body: if the type has an encoder of its own, or strange fields.
	encoder encoder
}

// form returns the form of a pointer to a struct, the same for the same type.
func (r *Registry) form(t reflect.Type) *typed {
	t = t.Elem()
	f := r.forms[t]
	if f == nil {
		f = &typed{new: r.decoders.allocator(t), decoder: r.decoders.of(t), whole: decodesItself(t)}
		if fields, ok := fieldsOf(t); ok && !encodesItself(t) {
			f.encoder = r.encoders.members(t, slices.DeleteFunc(fields, func(f structField) bool {
				return f.name == "apiVersion" || f.name == "kind" || f.name == "metadata"
			}))
		}
		r.forms[t] = f
	}
	return f
}

func (f *typed) blank(w *worker, t metav1.TypeMeta, labels, annotations map[string]string) (runtime.Object, error) {
	obj := f.new(w).Interface().(runtime.Object)
	objType, err := typeMeta(obj)
	if err != nil {
		return nil, err
	}
	meta, err := objectMeta(obj)
	if err != nil {
		return nil, err
	}
	*objType, *meta = t, w.object.meta
	meta.Labels, meta.Annotations = labels, annotations
	return obj, nil
}

func (f *typed) decode(w *worker, obj runtime.Object, body []byte) error {
	if f.whole {
		metadata, err := rawjson.Set(w.object.metadata, "managedFields", nil)
		if err != nil {
			return err
		}
		if body, err = rawjson.Set(body, "metadata", metadata); err != nil {
			return err
		}
		return slow(body, obj)
	}
	c := rawjson.NewCursor(body)
	if f.decoder(w, &c, reflect.ValueOf(obj).Elem()) == nil {
		return nil
	}
	t, err := typeMeta(obj)
	if err != nil {
		return err
	}
	m, err := objectMeta(obj)
	if err != nil {
		return err
	}
	objType, meta := *t, *m
	reflect.ValueOf(obj).Elem().SetZero() // whatever the decoder has left
	*t, *m = objType, meta
	return slow(body, obj)
}

func (f *typed) encode(w *worker, obj runtime.Object) ([]byte, error) {
	if f.encoder != nil {
		var err error
		w.body, err = f.encoder(w, w.body[:0], reflect.ValueOf(obj).Elem())
		w.depth = 0
		return w.body, err
	}
	t, err := typeMeta(obj)
	if err != nil {
		return nil, err
	}
	m, err := objectMeta(obj)
	if err != nil {
		return nil, err
	}
	*t, *m = metav1.TypeMeta{}, metav1.ObjectMeta{} // their text is at hand
	text, err := w.encode(obj)
	if err != nil {
		return nil, err
	}
	return w.withoutMetadata(text)
}

// withoutMetadata returns the body of an object.
func (w *worker) withoutMetadata(text []byte) ([]byte, error) {
	w.body = append(w.body[:0], '{')
	c := rawjson.NewCursor(text)
	for c.Enter('{'); c.Next(); {
		switch string(c.Name()) {
		case "apiVersion", "kind", "metadata":
			c.Value()
		default:
			c.Value()
			w.body = appendMember(w.body, c.Member())
		}
	}
	w.body = append(w.body, '}')
	return w.body, c.End()
}

func (f *typed) metadata(w *worker, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error) {
	objType, err := typeMeta(obj)
	if err != nil {
		return nil, nil, err
	}
	m, err := objectMeta(obj)
	if err != nil {
		return nil, nil, err
	}
	*objType = t
	return m.Labels, m.Annotations, checkMetadata(w.before, m)
}

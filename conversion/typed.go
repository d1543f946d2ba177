package conversion

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// typed is the form of a Go type.
type typed struct {
	goType  reflect.Type // the struct
	dynamic bool         // see fast
	whole   bool         // the type has a decoder of its own, and gets the whole object

	// body is a struct of the fields which are not metadata, and fields are their
	// indexes in goType: to encode it is to encode the body, and less work. It is
	// nil where that is not the same: if the type has an encoder of its own, or
	// embeds more than its metadata.
	body   reflect.Type
	fields []int
}

// form returns the form of a pointer to a struct, the same for the same type.
func (r *Registry) form(t reflect.Type) *typed {
	t = t.Elem()
	f := r.forms[t]
	if f == nil {
		f = &typed{goType: t, dynamic: isDynamic(t), whole: decodesItself(t)}
		f.body, f.fields = bodyOf(t)
		r.forms[t] = f
	}
	return f
}

func bodyOf(t reflect.Type) (body reflect.Type, fields []int) {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if reflect.PointerTo(t).Implements(i) {
			return nil, nil
		}
	}
	var list []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Type == reflect.TypeFor[metav1.TypeMeta](), f.Type == reflect.TypeFor[metav1.ObjectMeta]():
		case f.Anonymous:
			return nil, nil
		case f.IsExported():
			list = append(list, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
			fields = append(fields, i)
		}
	}
	return reflect.StructOf(list), fields
}

// slab is memory for objects of one type: a list asks for many. Each is handed out
// once.
type slab struct {
	objects reflect.Value // a slice
	used    int
	body    reflect.Value // a struct of the type's body, for the encoder
}

func (w *worker) slab(f *typed) *slab {
	s := w.slabs[f]
	if s == nil {
		s = &slab{}
		if f.body != nil {
			s.body = reflect.New(f.body).Elem()
		}
		w.slabs[f] = s
	}
	return s
}

func (f *typed) blank(w *worker, kind schema.GroupVersionKind, labels, annotations map[string]string) (runtime.Object, error) {
	s := w.slab(f)
	if !s.objects.IsValid() || s.used == s.objects.Len() {
		s.objects, s.used = reflect.MakeSlice(reflect.SliceOf(f.goType), w.batch, w.batch), 0
	}
	obj := s.objects.Index(s.used).Addr().Interface().(runtime.Object)
	s.used++
	return obj, f.setMeta(w, obj, kind, labels, annotations)
}

// setMeta gives an object its type and its metadata.
func (f *typed) setMeta(w *worker, obj runtime.Object, kind schema.GroupVersionKind, labels, annotations map[string]string) error {
	t, err := typeMeta(obj)
	if err != nil {
		return err
	}
	m, err := objectMeta(obj)
	if err != nil {
		return err
	}
	*t = metav1.TypeMeta{APIVersion: w.registry.apiVersion(kind.GroupVersion()), Kind: kind.Kind}
	*m = w.object.meta
	m.Labels, m.Annotations = labels, annotations
	return nil
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
	}
	if !f.dynamic {
		if fast(body, obj) == nil {
			return nil
		}
		kind := obj.GetObjectKind().GroupVersionKind()
		reflect.ValueOf(obj).Elem().SetZero() // whatever that left
		if err := f.setMeta(w, obj, kind, w.labels, w.annotations); err != nil {
			return err
		}
	}
	return slow(body, obj)
}

func (f *typed) encode(w *worker, obj runtime.Object) ([]byte, error) {
	w.encoded.Reset()
	if f.body != nil {
		from, body := reflect.ValueOf(obj).Elem(), w.slab(f).body
		for i, j := range f.fields {
			body.Field(i).Set(from.Field(j))
		}
		err := w.encoder.Encode(body.Addr().Interface())
		body.SetZero()
		return bytes.TrimSuffix(w.encoded.Bytes(), []byte{'\n'}), err
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
	if err := w.encoder.Encode(obj); err != nil {
		return nil, err
	}
	return w.withoutMetadata(w.encoded.Bytes())
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

func (f *typed) metadata(w *worker, obj runtime.Object) (labels, annotations map[string]string, err error) {
	m, err := objectMeta(obj)
	if err != nil {
		return nil, nil, err
	}
	return m.Labels, m.Annotations, checkMetadata(&w.before, m)
}

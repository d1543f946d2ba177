package conversion

import (
	"context"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// step is one conversion function: from one version of a kind to another.
type step struct {
	from, to schema.GroupVersionKind
	in, out  form
	call     func(ctx context.Context, in, out runtime.Object) error
}

// form is how a function wants to see an object.
type form interface {
	// blank returns an object that has nothing but its type and the metadata of the
	// worker's object.
	blank(w *worker, kind schema.GroupVersionKind) (runtime.Object, error)
	// decode fills in the rest from a body.
	decode(w *worker, obj runtime.Object, body []byte) error
	// encode returns the body of an object. It may take the object apart.
	encode(w *worker, obj runtime.Object) (body []byte, err error)
	// metadata returns the object's labels and annotations, and an error if other
	// metadata is not what blank has set.
	metadata(w *worker, obj runtime.Object) (labels, annotations map[string]string, err error)
}

// typed is the form of a Go type.
type typed struct {
	goType  reflect.Type // the struct
	dynamic bool         // see decode
	whole   bool         // the type has a decoder of its own, and gets the whole object
}

// typedForm returns the form of a pointer to a struct.
func typedForm(t reflect.Type) typed {
	return typed{goType: t.Elem(), dynamic: isDynamic(t.Elem()), whole: decodesItself(t.Elem())}
}

func (f typed) blank(w *worker, kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := reflect.New(f.goType).Interface().(runtime.Object)
	return obj, f.setMeta(w, obj, kind)
}

func (f typed) setMeta(w *worker, obj runtime.Object, kind schema.GroupVersionKind) error {
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
	m.Labels, m.Annotations = maps.Clone(w.labels), maps.Clone(w.annotations)
	return nil
}

func (f typed) decode(w *worker, obj runtime.Object, body []byte) error {
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
		if err := f.setMeta(w, obj, kind); err != nil {
			return err
		}
	}
	return slow(body, obj)
}

func (f typed) encode(w *worker, obj runtime.Object) ([]byte, error) {
	t, err := typeMeta(obj)
	if err != nil {
		return nil, err
	}
	m, err := objectMeta(obj)
	if err != nil {
		return nil, err
	}
	*t, *m = metav1.TypeMeta{}, metav1.ObjectMeta{} // their text is at hand
	w.encoded.Reset()
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

func (f typed) metadata(w *worker, obj runtime.Object) (labels, annotations map[string]string, err error) {
	m, err := objectMeta(obj)
	if err != nil {
		return nil, nil, err
	}
	return m.Labels, m.Annotations, checkMetadata(&w.before, m)
}

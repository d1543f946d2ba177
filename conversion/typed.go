package conversion

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// typed is the form of a Go type.
type typed struct {
	goType  reflect.Type // the struct
	id      int          // of its object in a worker
	empty   func(v reflect.Value)
	decoder codec.Decoder
	whole   bool // the type has a decoder of its own, and gets the whole object

	// encoder encodes the fields which are not metadata. It is nil where that is not
	// the body: if the type has an encoder of its own, or strange fields.
	encoder codec.Encoder
}

// form returns the form of a pointer to a struct, the same for the same type.
func (r *Registry) form(t reflect.Type) *typed {
	t = t.Elem()
	f := r.forms[t]
	if f == nil {
		f = &typed{goType: t, id: len(r.forms), empty: emptyOf(t), decoder: r.codecs.Decoder(t), whole: codec.DecodesItself(t)}
		f.encoder, _ = r.codecs.EncoderWithout(t, "apiVersion", "kind", "metadata")
		r.forms[t] = f
	}
	return f
}

// emptyOf returns what empties a value of a type, except for the metadata that [typed.blank]
// fills in.
func emptyOf(t reflect.Type) func(v reflect.Value) {
	sample := reflect.New(t)
	meta, _ := objectMeta(sample.Interface().(runtime.Object))
	ofType, _ := typeMeta(sample.Interface().(runtime.Object))
	var fields []int
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return reflect.Value.SetZero // that cannot be emptied alone
		}
		if field := sample.Elem().Field(i).Addr().Interface(); field != any(meta) && field != any(ofType) {
			fields = append(fields, i)
		}
	}
	return func(v reflect.Value) {
		for _, i := range fields {
			v.Field(i).SetZero()
		}
	}
}

// vessel is the one object of a type that a worker has, with maps for labels and
// annotations. It is emptied and filled again for each object that is converted.
type vessel struct {
	object              runtime.Object
	value               reflect.Value      // the struct
	typeMeta            *metav1.TypeMeta   // in it
	meta                *metav1.ObjectMeta // in it
	labels, annotations map[string]string
}

// blank returns the worker's vessel for a type, with a new object in it.
func (f *typed) blank(w *worker, t metav1.TypeMeta, labels, annotations map[string]string) *vessel {
	for len(w.vessels) <= f.id {
		w.vessels = append(w.vessels, &vessel{})
	}
	v := w.vessels[f.id]
	if v.object == nil {
		p := reflect.New(f.goType)
		v.object, v.value = p.Interface().(runtime.Object), p.Elem()
		v.typeMeta, _ = typeMeta(v.object) // the type has both: see kindOf
		v.meta, _ = objectMeta(v.object)
	} else {
		f.empty(v.value)
	}
	v.setMeta(w, t, labels, annotations)
	return v
}

func (v *vessel) setMeta(w *worker, t metav1.TypeMeta, labels, annotations map[string]string) {
	*v.typeMeta, *v.meta = t, w.object.meta
	v.meta.Labels, v.meta.Annotations = labels, annotations
}

func (f *typed) target(w *worker, t metav1.TypeMeta, p parts) (runtime.Object, error) {
	v := f.blank(w, t, nil, nil)
	// The maps are copies: a label that is added to the target is not added to the source.
	v.meta.Labels, v.meta.Annotations = refill(&v.labels, p.labels), refill(&v.annotations, p.annotations)
	return v.object, nil
}

// refill copies a map into another one, which may be nil, and returns that.
func refill(m *map[string]string, from map[string]string) map[string]string {
	if from == nil {
		return nil
	}
	const many = 64 // what was large once takes long to clear
	if *m == nil || len(*m) > many {
		*m = make(map[string]string, len(from))
	}
	clear(*m)
	maps.Copy(*m, from)
	return *m
}

func (f *typed) source(w *worker, t metav1.TypeMeta, p parts) (runtime.Object, error) {
	v := f.blank(w, t, p.labels, p.annotations)
	if f.whole {
		text, err := w.object.append(nil, headOf(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)), p)
		if err != nil {
			return nil, err
		}
		err = codec.Slow(text, v.object)
		v.setMeta(w, t, p.labels, p.annotations) // less managedFields
		return v.object, err
	}
	w.cursor = rawjson.NewCursor(p.body)
	if f.decoder(&w.memory, &w.cursor, v.value) == nil {
		return v.object, nil
	}
	v = f.blank(w, t, p.labels, p.annotations) // without what the decoder has left
	return v.object, codec.Slow(codec.Once(p.body), v.object)
}

func (f *typed) encode(w *worker, obj runtime.Object) ([]byte, error) {
	if f.encoder != nil {
		var err error
		w.body, err = f.encoder(&w.memory, w.body[:0], reflect.ValueOf(obj).Elem())
		return w.body, err
	}
	v := w.vessels[f.id]
	*v.typeMeta, *v.meta = metav1.TypeMeta{}, metav1.ObjectMeta{} // their text is at hand
	text, err := w.memory.Encode(obj)
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

func (f *typed) metadata(w *worker, _ runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error) {
	v := w.vessels[f.id]
	*v.typeMeta = t
	return v.meta.Labels, v.meta.Annotations, checkMetadata(w.before, v.meta)
}

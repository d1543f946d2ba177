package admission

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/listkeys"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// representation is how functions see an object: as a Go type or as a map, without
// metadata.managedFields, which may be larger than all the rest.
type representation interface {
	// decode decodes the JSON of an object.
	decode(m *codec.Memory, text []byte) (runtime.Object, error)
	// encode appends the JSON of an object.
	encode(m *codec.Memory, b []byte, obj runtime.Object) ([]byte, error)
}

// everyKind reports whether a type can hold objects of every kind.
func everyKind(t reflect.Type) bool {
	return t == reflect.TypeFor[*unstructured.Unstructured]() || t == reflect.TypeFor[*metav1.PartialObjectMetadata]()
}

// newRepresentation returns the representation of a type.
func newRepresentation(codecs *codec.Codecs, t reflect.Type) representation {
	if t == reflect.TypeFor[*unstructured.Unstructured]() {
		return unstructuredObject{}
	}
	t = t.Elem()
	return &typed{goType: t, decoder: codecs.Decoder(t, "metadata.managedFields"), encoder: codecs.Encoder(t)}
}

// typed is the representation of a Go type.
type typed struct {
	goType   reflect.Type // the struct
	decoder  codec.Decoder
	encoder  codec.Encoder
	listKeys *listkeys.Tree
}

func (f *typed) decode(m *codec.Memory, text []byte) (runtime.Object, error) {
	value := reflect.New(f.goType)
	cursor := rawjson.NewCursor(text)
	err := f.decoder(m, &cursor, value.Elem())
	if err == nil {
		err = cursor.End()
	}
	if err != nil {
		return nil, err
	}
	obj := value.Interface().(runtime.Object)
	// Only fast decoders skip the path of managedFields.
	if o, ok := obj.(metav1.ObjectMetaAccessor); ok && o.GetObjectMeta() != nil {
		o.GetObjectMeta().SetManagedFields(nil)
	}
	return obj, nil
}

func (f *typed) encode(m *codec.Memory, b []byte, obj runtime.Object) ([]byte, error) {
	return f.encoder(m, b, reflect.ValueOf(obj).Elem())
}

// unstructuredObject is the representation of maps.
type unstructuredObject struct{}

func (unstructuredObject) decode(_ *codec.Memory, text []byte) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	if err := codec.Decode(text, &obj.Object); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	return obj, nil
}

func (unstructuredObject) encode(m *codec.Memory, b []byte, obj runtime.Object) ([]byte, error) {
	text, err := m.Encode(obj.(*unstructured.Unstructured).Object)
	return append(b, text...), err
}

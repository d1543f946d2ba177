package codec

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Form is how a function sees objects: as a Go type or as a map, without metadata.managedFields, which
// may be larger than all the rest.
type Form struct {
	Type reflect.Type // a pointer to a struct
	Map  bool         // the type is unstructured.Unstructured
	// Whole is set if Decode needs a whole object, because it is a map, or the type has its own decoder.
	Whole bool

	allocate func(a *Arena) pointer
	decode   Decoder
	encode   Encoder
	body     Encoder // encode without what [AppendBody] leaves out; nil if it has to do that
}

// Form returns the form of a type, the same for the same type.
func (c *Codecs) Form(t reflect.Type) *Form {
	f := c.forms[t]
	if f == nil {
		f = &Form{Type: t, Map: t == reflect.TypeFor[*unstructured.Unstructured]()}
		c.forms[t] = f
		elem := t.Elem()
		f.Whole = f.Map || jsontype.DecodesItself(elem)
		f.allocate, f.decode = c.decoders.allocator(elem), c.Decoder(elem, "metadata.managedFields")
		f.encode = c.Encoder(elem)
		if fields, ok := fieldsOf(elem); ok && !jsontype.EncodesItself(elem) {
			body := slices.DeleteFunc(slices.Clone(fields), func(f jsontype.Field) bool { return isHead(f.JSON) })
			f.body = fromTheTop(elem, c.encoders.members(body))
		}
	}
	return f
}

// New returns an empty object.
func (f *Form) New(a *Arena) runtime.Object {
	return f.value(a).Interface().(runtime.Object)
}

func (f *Form) value(a *Arena) reflect.Value { return reflect.NewAt(f.Type.Elem(), f.allocate(a).p) }

// Decode returns a new object that has what the JSON text of an object has.
func (f *Form) Decode(a *Arena, text []byte) (runtime.Object, error) {
	if f.Map {
		obj := &unstructured.Unstructured{}
		err := Decode(text, &obj.Object)
		unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
		return obj, err
	}
	value := f.value(a)
	a.cursor = rawjson.NewCursor(text)
	err := f.decode(a, &a.cursor, value.Elem())
	if err == nil {
		err = a.cursor.End()
	}
	a.cursor = rawjson.Cursor{} // must not hold the text
	obj := value.Interface().(runtime.Object)
	// Only fast decoders skip the path of managedFields.
	if o, ok := obj.(metav1.ObjectMetaAccessor); ok && o.GetObjectMeta() != nil {
		o.GetObjectMeta().SetManagedFields(nil)
	}
	return obj, err
}

// Append appends the JSON of an object.
func (f *Form) Append(a *Arena, b []byte, obj runtime.Object) ([]byte, error) {
	if f.Map {
		text, err := a.Encode(obj.(*unstructured.Unstructured).Object)
		return append(b, text...), err
	}
	return f.encode(a, b, reflect.ValueOf(obj).Elem())
}

// AppendBody appends the JSON of an object without its apiVersion, kind and metadata. b is empty.
func (f *Form) AppendBody(a *Arena, b []byte, obj runtime.Object) ([]byte, error) {
	if f.body != nil {
		return f.body(a, b, reflect.ValueOf(obj).Elem())
	}
	var encoded any = obj
	if f.Map {
		encoded = obj.(*unstructured.Unstructured).Object
	}
	text, err := a.Encode(encoded)
	if err != nil {
		return nil, err
	}
	return AppendBody(b, text)
}

// isHead reports whether a member of an object is not in its body.
func isHead(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// AppendBody appends the text of an object without its apiVersion, kind and metadata. b is empty.
func AppendBody(b, object []byte) ([]byte, error) {
	b = append(b, '{')
	for a, err := range rawjson.Members(object) {
		if err != nil {
			return nil, err
		}
		if !isHead(string(a.Name)) {
			b = rawjson.AppendMember(b, a.Text)
		}
	}
	return append(b, '}'), nil
}

package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// object is the text of an object, and what must be known of it before it is
// decoded.
type object struct {
	text            []byte
	kind            schema.GroupVersionKind
	metadata        []byte // {} if the object has none
	namespace, name string
}

// cut finds the parts of an object. What it returns with an error holds what
// could be read all the same.
func cut(text []byte) (object, error) {
	o := object{text: text, metadata: []byte(`{}`)}
	var apiVersion string
	for m, err := range rawjson.Members(text) {
		if err != nil {
			return o, fmt.Errorf("it is no JSON object: %w", err)
		}
		switch m.Name {
		case "apiVersion":
			apiVersion, _ = rawjson.String(m.Value)
		case "kind":
			o.kind.Kind, _ = rawjson.String(m.Value)
		case "metadata":
			o.metadata = m.Value
		}
	}
	if string(o.metadata) == "null" {
		o.metadata = []byte(`{}`)
	}
	for m, err := range rawjson.Members(o.metadata) {
		if err != nil {
			return o, fmt.Errorf("metadata is no JSON object: %w", err)
		}
		switch m.Name {
		case "namespace":
			o.namespace, _ = rawjson.String(m.Value)
		case "name":
			o.name, _ = rawjson.String(m.Value)
		}
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return o, fmt.Errorf("apiVersion: %w", err)
	}
	o.kind = gv.WithKind(o.kind.Kind)
	if apiVersion == "" || o.kind.Kind == "" {
		return o, errors.New("it has no apiVersion or no kind")
	}
	return o, nil
}

// String names the object as users know it.
func (o object) String() string {
	kind := o.kind.Kind
	if kind == "" {
		kind = "object"
	}
	switch {
	case o.name == "":
		return kind
	case o.namespace == "":
		return kind + " " + o.name
	default:
		return kind + " " + o.namespace + "/" + o.name
	}
}

// decode fills in a typed object, except for its managedFields: they may be
// larger than all the rest, and no conversion has any business with them.
func (o object) decode(into runtime.Object) error {
	metadata, err := rawjson.Set(o.metadata, "managedFields", nil)
	if err != nil {
		return err
	}
	text, err := rawjson.Set(o.text, "metadata", metadata)
	if err != nil {
		return err
	}
	// The API server's own decoder of JSON: case-sensitive, and lenient otherwise.
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// encode returns the text of a converted object: the source's metadata and the
// target's everything else.
func (o object) encode(out runtime.Object, as schema.GroupVersionKind, before metav1.ObjectMeta) ([]byte, error) {
	after, err := objectMeta(out)
	if err != nil {
		return nil, err
	}
	metadata, err := spliceMetadata(o.metadata, &before, after)
	if err != nil {
		return nil, err
	}
	*after = metav1.ObjectMeta{} // its text is at hand
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false) // a < that came as a < goes as a <
	if err := encoder.Encode(out); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(len(metadata) + encoded.Len() + 128)
	b.WriteString(`{"apiVersion":`)
	b.Write(rawjson.Quote(as.GroupVersion().String()))
	b.WriteString(`,"kind":`)
	b.Write(rawjson.Quote(as.Kind))
	b.WriteString(`,"metadata":`)
	b.Write(metadata)
	for m, err := range rawjson.Members(encoded.Bytes()) {
		switch {
		case err != nil:
			return nil, err
		case m.Name != "apiVersion" && m.Name != "kind" && m.Name != "metadata":
			b.WriteByte(',')
			b.Write(encoded.Bytes()[m.Start:m.End])
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

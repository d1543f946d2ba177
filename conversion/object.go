package conversion

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// object is the JSON of an object, split into the parts that a conversion treats
// differently.
type object struct {
	text             []byte
	apiVersion, kind string
	gv               schema.GroupVersion
	metadata         []byte            // its text, or {}
	meta             metav1.ObjectMeta // the same decoded, less managedFields
	labels           []pair
	annotations      []pair
	members          [][]byte // the texts of all other members
	err              error    // why it cannot be converted, apart from bad JSON
}

// pair is a label or an annotation as it was read.
type pair struct{ key, value string }

var noMetadata = []byte(`{}`)

// String returns the kind and name of the object for messages.
func (o *object) String() string {
	return gvk.Name(cmp.Or(o.kind, "object"), o.meta.Namespace, o.meta.Name)
}

// append appends an object to dst: head, which ends before the metadata, the metadata of o
// with the labels and annotations of the payload, and the payload's body.
func (o *object) append(dst, head []byte, p payload) ([]byte, error) {
	metadata, err := o.spliceMetadata(p.Labels, p.Annotations)
	if err != nil {
		return nil, err
	}
	dst = append(append(dst, head...), metadata...)
	if len(p.Body) > len(`{}`) {
		dst = append(dst, ',')
	}
	return append(dst, p.Body[1:]...), nil
}

// body appends a JSON object of all members except for apiVersion, kind and metadata to
// dst.
func (o *object) body(dst []byte) []byte {
	dst = append(dst, '{')
	for _, member := range o.members {
		dst = rawjson.AppendMember(dst, member)
	}
	return append(dst, '}')
}

// parse reads the object at the cursor in one pass. After an error of the object or
// of the cursor, the object holds the members that could be read.
func (o *object) parse(arena *codec.Arena, metadata codec.Decoder, c *rawjson.Cursor) {
	*o = object{metadata: noMetadata, labels: o.labels[:0], annotations: o.annotations[:0], members: o.members[:0]}
	begin := c.Offset()
	for c.Enter('{'); c.Next('{'); {
		switch string(c.Name()) {
		case "apiVersion":
			o.apiVersion, _ = arena.String(c)
		case "kind":
			o.kind, _ = arena.String(c)
		case "metadata":
			o.err = o.parseMetadata(arena, metadata, c)
		default:
			c.Value()
			o.members = append(o.members, c.Member())
		}
	}
	o.text = c.Since(begin)
	o.labels, o.annotations = appendPairs(o.labels, o.meta.Labels), appendPairs(o.annotations, o.meta.Annotations)
	switch {
	case o.err != nil || c.Err() != nil:
	case o.apiVersion == "" || o.kind == "":
		o.err = errors.New("apiVersion and kind are required")
	default:
		var err error
		if o.gv, err = schema.ParseGroupVersion(o.apiVersion); err != nil {
			o.err = fmt.Errorf("apiVersion: %w", err)
		}
	}
}

// parseMetadata reads the metadata at the cursor. It does not decode managedFields, which
// may be larger than the rest of the object.
func (o *object) parseMetadata(arena *codec.Arena, metadata codec.Decoder, c *rawjson.Cursor) error {
	o.metadata, o.meta = noMetadata, metav1.ObjectMeta{}
	begin := c.Offset()
	switch c.Begins() {
	case 'n':
		c.Value()
		return nil
	case '{':
	default:
		c.Value()
		return errors.New("metadata is not a JSON object")
	}
	if err := metadata(arena, c, reflect.ValueOf(&o.meta).Elem()); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	o.metadata = c.Since(begin)
	o.meta.ManagedFields = nil
	return nil
}

func appendPairs(pairs []pair, m map[string]string) []pair {
	for k, v := range m {
		pairs = append(pairs, pair{k, v})
	}
	return pairs
}

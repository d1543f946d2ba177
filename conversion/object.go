package conversion

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/kinds"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// object is an object as text, cut into the parts that a conversion treats
// differently.
type object struct {
	apiVersion, kind string
	gv               schema.GroupVersion
	metadata         []byte            // its text; {} if there is none
	meta             metav1.ObjectMeta // the same decoded, less managedFields
	labels           []pair
	annotations      []pair
	body             []byte // a JSON object of all members but the above
}

// pair is a label or an annotation as it was read.
type pair struct{ key, value string }

// String names the object as users know it.
func (o *object) String() string {
	return kinds.Name(cmp.Or(o.kind, "object"), o.meta.Namespace, o.meta.Name)
}

// append appends an object that begins with head, as far as to its metadata, which are
// those of o with the parts.
func (o *object) append(dst, head []byte, p parts) ([]byte, error) {
	metadata, err := o.spliceMetadata(p.labels, p.annotations)
	if err != nil {
		return nil, err
	}
	dst = append(append(dst, head...), metadata...)
	if len(p.body) > len(`{}`) {
		dst = append(dst, ',')
	}
	return append(dst, p.body[1:]...), nil
}

// cut reads the object at the cursor. It passes over the text once. After an error,
// the object holds what could be read all the same.
func (w *worker) cut(c *rawjson.Cursor) error {
	o := &w.object
	o.apiVersion, o.kind, o.gv = "", "", schema.GroupVersion{}
	o.body = append(o.body[:0], '{')
	w.clearMetadata()
	var versionErr error
	for c.Enter('{'); c.Next(); {
		switch string(c.Name()) {
		case "apiVersion":
			o.gv, o.apiVersion, versionErr = w.apiVersion(c)
		case "kind":
			o.kind, _ = w.memory.String(c)
		case "metadata":
			w.clearMetadata()
			if c.Begins() == 'n' {
				c.Value()
				break
			}
			begin := c.Offset()
			if c.Begins() != '{' {
				return errors.New("metadata is no JSON object")
			}
			twice := w.cutMetadata(c)
			if o.metadata = c.Since(begin); twice {
				w.clearMetadata()
				o.metadata = codec.Once(c.Since(begin))
				once := rawjson.NewCursor(o.metadata)
				w.cutMetadata(&once)
			}
		default:
			c.Value()
			o.body = appendMember(o.body, c.Member())
		}
	}
	o.body = append(o.body, '}')
	if err := c.Err(); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	if len(w.rest) > 1 {
		w.rest = append(w.rest, '}')
		if err := codec.Slow(w.rest, &o.meta); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
		o.meta.ManagedFields = nil
		o.labels, o.annotations = pairsOf(o.meta.Labels), pairsOf(o.meta.Annotations)
	}
	if o.apiVersion == "" || o.kind == "" {
		return errors.New("it has no apiVersion or no kind")
	}
	if versionErr != nil {
		return fmt.Errorf("apiVersion: %w", versionErr)
	}
	return nil
}

// apiVersion decodes an apiVersion. Those of the registry are not parsed again.
func (w *worker) apiVersion(c *rawjson.Cursor) (gv schema.GroupVersion, apiVersion string, err error) {
	w.decoded, _ = c.AppendString(w.decoded[:0])
	if v, ok := w.registry.versions[string(w.decoded)]; ok {
		return v.gv, v.name, nil
	}
	apiVersion = w.memory.Intern(w.decoded)
	gv, err = schema.ParseGroupVersion(apiVersion)
	return gv, apiVersion, err
}

// clearMetadata makes the object one without metadata.
func (w *worker) clearMetadata() {
	o := &w.object
	o.metadata, o.meta, o.labels, o.annotations = noMetadata, metav1.ObjectMeta{}, o.labels[:0], o.annotations[:0]
	w.rest = append(w.rest[:0], '{')
}

var noMetadata = []byte(`{}`)

// cutMetadata decodes the metadata at the cursor. What most objects have is
// decoded here; the rest is put aside for the decoder that knows everything.
// managedFields are not decoded: they may be larger than all the rest, and no
// conversion has any business with them. It reports whether a member is there twice.
func (w *worker) cutMetadata(c *rawjson.Cursor) (twice bool) {
	o := &w.object
	m := &o.meta
	names, sorted := make([][]byte, 0, 16), true // as the API server sorts them
	for c.Enter('{'); c.Next(); {
		done := false
		name := c.Name()
		sorted = sorted && (len(names) == 0 || string(names[len(names)-1]) < string(name))
		names = append(names, name)
		switch string(name) {
		case "name":
			m.Name, done = w.memory.String(c)
		case "namespace":
			m.Namespace, done = w.memory.String(c)
		case "generateName":
			m.GenerateName, done = w.memory.String(c)
		case "resourceVersion":
			m.ResourceVersion, done = w.memory.String(c)
		case "uid":
			var uid string
			uid, done = w.memory.String(c)
			m.UID = types.UID(uid)
		case "generation":
			n, err := strconv.ParseInt(string(c.Value()), 10, 64)
			m.Generation, done = n, err == nil
		case "creationTimestamp":
			m.CreationTimestamp, done = codec.Time(c.Value())
		case "labels":
			w.cutMap(c, "labels", &w.labels, &m.Labels, &o.labels)
			continue
		case "annotations":
			w.cutMap(c, "annotations", &w.annotations, &m.Annotations, &o.annotations)
			continue
		case "managedFields":
			c.Value()
			done = true
		default:
			c.Value()
		}
		if !done {
			w.rest = appendMember(w.rest, c.Member())
		}
	}
	if sorted {
		return false
	}
	slices.SortFunc(names, bytes.Compare)
	return len(slices.CompactFunc(names, bytes.Equal)) < len(names)
}

// cutMap decodes an object of strings into a map, and into pairs. The map is the
// worker's own.
func (w *worker) cutMap(c *rawjson.Cursor, name string, own, into *map[string]string, pairs *[]pair) {
	begin, strange := c.Offset(), c.Begins() != '{'
	if strange {
		c.Value()
	} else {
		for c.Enter('{'); c.Next(); {
			key, known := w.memory.Name(c)
			value, ok := w.memory.String(c)
			strange = strange || !known || !ok
			*pairs = append(*pairs, pair{key, value})
		}
	}
	if strange {
		*pairs = (*pairs)[:0]
		w.rest = append(appendMember(w.rest, rawjson.Quote(name)), ':')
		w.rest = append(w.rest, c.Since(begin)...)
		return
	}
	if *into == nil {
		*into = refill(own, map[string]string{})
	}
	for _, p := range *pairs {
		(*into)[p.key] = p.value
	}
	if len(*into) != len(*pairs) { // a name was there twice
		*pairs = pairsOf(*into)
	}
}

func pairsOf(m map[string]string) []pair {
	var pairs []pair
	for k, v := range m {
		pairs = append(pairs, pair{k, v})
	}
	return pairs
}

func appendMember(object, member []byte) []byte {
	if len(object) > 1 {
		object = append(object, ',')
	}
	return append(object, member...)
}

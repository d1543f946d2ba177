package listmapkeys

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Tree is a tree of the fields that lead to lists with keys, or to structs. A nil Tree knows nothing.
type Tree struct {
	keys     []string          // if this is such a list
	values   map[string]string // the defaults of the keys, if they have any, as JSON
	fields   map[string]*Tree  // by name; "" is any name
	isStruct bool              // if this is a struct, and no pointer to one
	under    *Tree             // what holds where this tree knows nothing
}

// OfDefinitions returns the keys of the lists of each version that has a schema, from the YAML or JSON of one or several
// CustomResourceDefinitions. It returns an error if they cannot be read, or if one has no schema.
func OfDefinitions(text []byte) (map[schema.GroupVersionKind]*Tree, error) {
	keys := map[schema.GroupVersionKind]*Tree{}
	found, err := crd.Read(text)
	for _, d := range found {
		hasSchema := false
		for _, v := range d.Spec.Versions {
			if len(v.Schema.OpenAPIV3Schema) > 0 {
				hasSchema = true
				keys[d.GroupKind().WithVersion(v.Name)] = OfSchema(v.Schema.OpenAPIV3Schema)
			}
		}
		if !hasSchema {
			err = errors.Join(err, fmt.Errorf("%s has no schema", d))
		}
	}
	return keys, err
}

// OfSchema returns all list-map keys of an OpenAPI schema, and their defaults.
func OfSchema(s map[string]any) *Tree {
	t := &Tree{fields: map[string]*Tree{}}
	items, isList := s["items"].(map[string]any)
	if isList {
		t = OfSchema(items)
	}
	if names, _ := s["x-kubernetes-list-map-keys"].([]any); len(names) > 0 {
		t.keys = nil
		properties, _ := items["properties"].(map[string]any)
		for _, name := range names {
			if name, ok := name.(string); ok {
				t.keys = append(t.keys, name)
				property, _ := properties[name].(map[string]any)
				t.setDefault(name, property["default"])
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		if property, ok := property.(map[string]any); ok {
			t.fields[name] = OfSchema(property)
		}
	}
	if every, ok := s["additionalProperties"].(map[string]any); ok { // it may be a bool
		t.fields[""] = OfSchema(every)
	}
	return t
}

// Over returns a tree that knows what t knows, and where that is nothing, what under knows.
func (t *Tree) Over(under *Tree) *Tree {
	switch {
	case t == nil:
		return under
	case under == nil:
		return t
	}
	return &Tree{t.keys, t.values, t.fields, t.isStruct, under}
}

// Field returns what is known of the field with that name, in an object or in the
// elements of a list; nil if that is nothing.
func (t *Tree) Field(name []byte) *Tree {
	if t == nil {
		return nil
	}
	field := t.fields[string(name)]
	if field == nil {
		field = t.fields[""]
	}
	return field.Over(t.under.Field(name))
}

// Keys returns the keys of the list that the tree is about; nil if it has none.
func (t *Tree) Keys() []string {
	if t == nil {
		return nil
	}
	if t.keys == nil {
		return t.under.Keys()
	}
	return t.keys
}

// IsMap reports whether the tree is about an object whose fields may have any name.
func (t *Tree) IsMap() bool {
	if t == nil {
		return false
	}
	_, any := t.fields[""]
	return any || t.under.IsMap()
}

// IsStruct reports whether the tree is about a field of a Go type that is a struct, and no pointer to one: omitzero
// leaves it out if it is zero.
func (t *Tree) IsStruct() bool { return t != nil && (t.isStruct || t.under.IsStruct()) }

// setDefault notes the value of a key in elements that lack it; nil and "" do not count.
func (t *Tree) setDefault(key string, value any) {
	text, err := json.Marshal(value)
	if s, ok := value.(string); ok {
		text = rawjson.Quote(s)
	}
	if value == nil || value == "" || err != nil {
		return
	}
	if t.values == nil {
		t.values = map[string]string{}
	}
	t.values[key] = string(text)
}

// Default returns the value that a key has in an element that lacks it, as JSON; "" if the key
// has no default.
func (t *Tree) Default(key string) string {
	if t == nil {
		return ""
	}
	if value, ok := t.values[key]; ok {
		return value
	}
	return t.under.Default(key)
}

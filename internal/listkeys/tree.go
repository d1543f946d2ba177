package listkeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// Tree is a tree of the fields that lead to lists with keys. A nil Tree knows no list.
type Tree struct {
	keys   []string          // if this is such a list
	values map[string]string // the defaults of the keys, if they have any, as JSON
	fields map[string]*Tree  // by name; "" is any name
	under  *Tree             // what holds where this tree knows nothing
}

// Over returns a tree that knows what t knows, and where that is nothing, what under knows.
// Nothing can be added to it.
func (t *Tree) Over(under *Tree) *Tree {
	switch {
	case t == nil:
		return under
	case under == nil:
		return t
	}
	return &Tree{t.keys, t.values, t.fields, under}
}

// Add says which keys a list has. The path is one of names joined by dots, such as
// spec.toppings; the elements of lists on the way are not named in it, and * is any name
// that has not been named before. Of two calls for the same list, the last counts. It is
// an error if a name or a key is empty, if the path has brackets, and if there are no keys.
func (t *Tree) Add(path string, keys ...string) error {
	names := strings.Split(path, ".")
	if strings.ContainsAny(path, "[]") {
		return fmt.Errorf("the path %q of a list has brackets: expected names joined by dots, such as spec.toppings", path)
	}
	if slices.Contains(names, "") || len(keys) == 0 || slices.Contains(keys, "") {
		return fmt.Errorf("the path %q and the keys %q of a list must not be empty", path, keys)
	}
	for _, name := range names {
		if name == "*" {
			name = ""
		}
		t = t.make(name)
	}
	t.keys = slices.Clone(keys)
	return nil
}

// AddFor is Add for objects of Go types, of which one must have the list. Any list may be in a nil type, and if there are no
// types. The error names the option ListMapKeys.
func (t *Tree) AddFor(types []reflect.Type, path string, keys ...string) error {
	err := t.Add(path, keys...)
	var wrong []error
	for _, of := range types {
		if err := check(of, path, keys); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", of, err))
		}
	}
	if err == nil && len(wrong) == len(types) {
		err = errors.Join(wrong...)
	}
	if err != nil {
		return fmt.Errorf("ListMapKeys %q: %w", path, err)
	}
	return nil
}

// AddSchema adds all list-map keys of an OpenAPI schema, and their defaults.
func (t *Tree) AddSchema(s map[string]any) {
	if names, _ := s["x-kubernetes-list-map-keys"].([]any); len(names) > 0 {
		t.keys = nil
		items, _ := s["items"].(map[string]any)
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
			t.make(name).AddSchema(property)
		}
	}
	if every, ok := s["additionalProperties"].(map[string]any); ok { // it may be a bool
		t.make("").AddSchema(every)
	}
	if items, ok := s["items"].(map[string]any); ok {
		t.AddSchema(items)
	}
}

// make returns what is known of a field, which may be nothing yet.
func (t *Tree) make(name string) *Tree {
	if t.fields == nil {
		t.fields = map[string]*Tree{}
	}
	if t.fields[name] == nil {
		t.fields[name] = t.fields[""].clone() // what holds for all holds for this one too
	}
	return t.fields[name]
}

func (t *Tree) clone() *Tree {
	c := &Tree{}
	if t == nil {
		return c
	}
	c.keys, c.values = t.keys, t.values
	for name, field := range t.fields {
		if c.fields == nil {
			c.fields = map[string]*Tree{}
		}
		c.fields[name] = field.clone()
	}
	return c
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

package listkeys

import (
	"reflect"
	"strings"
)

// OfType returns the keys that the patchMergeKey tags of a struct name, as those of
// Kubernetes' own types do (apimachinery/pkg/util/strategicpatch). A recursive type makes a
// tree that is one too: nothing can be added to it.
func OfType(t reflect.Type) *Tree {
	return (&typeReader{done: map[reflect.Type]*Tree{}}).read(t)
}

type typeReader struct{ done map[reflect.Type]*Tree }

func (r *typeReader) read(t reflect.Type) *Tree {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return r.read(t.Elem())
	case reflect.Map:
		return &Tree{fields: map[string]*Tree{"": r.read(t.Elem())}}
	case reflect.Struct:
	default:
		return nil
	}
	if tree, ok := r.done[t]; ok {
		return tree
	}
	tree := &Tree{fields: map[string]*Tree{}}
	r.done[t] = tree
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			if inline := r.read(f.Type); inline != nil {
				for name, field := range inline.fields {
					tree.fields[name] = field
				}
			}
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			field := r.read(f.Type)
			if key := f.Tag.Get("patchMergeKey"); key != "" && field != nil {
				field = &Tree{keys: []string{key}, fields: field.fields}
			}
			if field != nil {
				tree.fields[name] = field
			}
		}
	}
	return tree
}

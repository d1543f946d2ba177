package listkeys

import (
	"reflect"
	"strings"
)

// OfType returns the keys of the lists in a struct: those of server-side apply for Kubernetes'
// own types, and for others the one that a patchMergeKey tag names
// (apimachinery/pkg/util/strategicpatch). A recursive type makes a recursive tree, to which
// nothing can be added.
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
			if keys := keysOf(t, name, f.Tag); len(keys) > 0 && field != nil {
				field = &Tree{fields: field.fields}
				for _, key := range keys {
					key, value, _ := strings.Cut(key, "=")
					field.keys = append(field.keys, key)
					field.setDefault(key, value)
				}
			}
			if field != nil {
				tree.fields[name] = field
			}
		}
	}
	return tree
}

// keysOf returns the keys of the list in a field, each with its default after an equals sign.
func keysOf(t reflect.Type, name string, tag reflect.StructTag) []string {
	if pkg, ok := strings.CutPrefix(t.PkgPath(), "k8s.io/api/"); ok {
		if keys, ok := builtin[pkg+"."+t.Name()+"."+name]; ok {
			return strings.Fields(keys)
		}
	}
	return strings.Fields(tag.Get("patchMergeKey"))
}

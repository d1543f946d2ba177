package listkeys

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// OfType returns the keys of the lists in a struct: those of server-side apply for Kubernetes'
// own types, and for others the one that a patchMergeKey tag names
// (apimachinery/pkg/util/strategicpatch). A recursive type makes a recursive tree, to which
// nothing can be added. Of a nil type, nothing is known. Types that make their own JSON are read too, because most of
// them write their fields, and keys of fields that are not there do nothing.
func OfType(t reflect.Type) *Tree {
	return (&typeReader{done: map[reflect.Type]*Tree{}}).read(t)
}

type typeReader struct{ done map[reflect.Type]*Tree }

func (r *typeReader) read(t reflect.Type) *Tree {
	if t == nil {
		return nil
	}
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
	for _, f := range jsontype.FieldsOf(t) {
		field := r.read(f.Type)
		if field == nil {
			continue
		}
		if f.Type.Kind() == reflect.Slice {
			field = &Tree{fields: field.fields}
			kind := strings.TrimPrefix(f.Struct.PkgPath(), "k8s.io/api/") + "." + f.Struct.Name()
			for key := range strings.FieldsSeq(cmp.Or(builtin[kind+"."+f.JSON], f.Tag.Get("patchMergeKey"))) {
				key, value, _ := strings.Cut(key, "=")
				field.keys = append(field.keys, key)
				field.setDefault(key, value)
			}
		}
		tree.fields[f.JSON] = field
	}
	return tree
}

// check returns an error if a type has no list at a path, or its elements lack one of the keys. Anything may be in a nil
// type, in one that makes its own JSON, and in a struct that * stands for.
func check(t reflect.Type, path string, keys []string) error {
	element, isList := elements(t)
	for name := range strings.SplitSeq(path, ".") {
		if element == nil || name == "*" && element.Kind() == reflect.Struct {
			return nil
		}
		field := member(element, name)
		if field == nil {
			return fmt.Errorf("%s has no field %q", element, name)
		}
		element, isList = elements(field)
	}
	switch {
	case element == nil:
		return nil
	case !isList:
		return fmt.Errorf("type %s, expected a list", element)
	}
	for _, key := range keys {
		if member(element, key) == nil {
			return fmt.Errorf("%s has no field %q", element, key)
		}
	}
	return nil
}

// elements returns the type of the elements, and of their elements, if a type is a list, and else the type. It is nil if
// nothing is known of the JSON.
func elements(t reflect.Type) (element reflect.Type, isList bool) {
	for t != nil {
		switch t = jsontype.Pointed(t); {
		case t.Kind() == reflect.Interface || jsontype.EncodesItself(t):
			return nil, false
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			t, isList = t.Elem(), true
		default:
			return t, isList
		}
	}
	return nil, false
}

// member returns the type of a field of a struct, or of the values of a map, or nil.
func member(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	if f := jsontype.FieldsOf(t).Named(name); f != nil {
		return f.Type
	}
	return nil
}

package listmapkeys

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// OfType returns the keys of the lists in a struct: those of server-side apply for Kubernetes'
// own types, and for others the one that a patchMergeKey tag names
// (apimachinery/pkg/util/strategicpatch). A recursive type makes a recursive tree. Of a nil type, nothing is
// known. Types that make their own JSON are read too, because most of them write their fields, and keys of
// fields that are not there do nothing.
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
		switch {
		case f.Type.Kind() == reflect.Struct && !jsontype.EncodesItself(f.Type):
			field = &Tree{fields: field.fields, isStruct: true}
		case f.Type.Kind() == reflect.Slice:
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

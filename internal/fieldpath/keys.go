package fieldpath

import (
	"fmt"
	"reflect"
	"strings"
)

// CheckKeys returns an error if a type has no list at a path of names joined by dots, or
// its elements lack one of the keys. The elements of lists on the way are not named in the
// path, and * is any name. Anything may be below a type that makes its own JSON,
// and below a struct that * stands for.
func CheckKeys(t reflect.Type, path string, keys []string) error {
	for _, name := range strings.Split(path, ".") {
		element := bare(t)
		if unknown(element) || name == "*" && element.Kind() == reflect.Struct {
			return nil
		}
		if t = member(element, name); t == nil {
			return fmt.Errorf("%s has no field %q", element, name)
		}
	}
	element := bare(t)
	switch {
	case unknown(element):
		return nil
	case element == pointedTo(t):
		return fmt.Errorf("type %s, expected a list", element)
	}
	for _, key := range keys {
		if member(element, key) == nil {
			return fmt.Errorf("%s has no field %q", element, key)
		}
	}
	return nil
}

// member returns the type of a field of a struct, or of the values of a map, or nil.
func member(t reflect.Type, name string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		if f, ok := fieldOf(t, name); ok {
			return f.Type
		}
	}
	return nil
}

// unknown reports whether nothing is known of the JSON of a type.
func unknown(t reflect.Type) bool { return t.Kind() == reflect.Interface || Opaque(t) }

// bare returns a type without the pointers and lists around it.
func bare(t reflect.Type) reflect.Type {
	for t = pointedTo(t); !unknown(t) && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array); {
		t = pointedTo(t.Elem())
	}
	return t
}

package schema

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// findMistyped returns, by path, the decoder's messages for all values in the JSON of a definition
// that have another type than their fields; the server's decoder reports only the first, with a
// path that is wrong below items and additionalProperties. It also returns the JSON with null,
// which fits every field, in their place, so that the rest can be decoded.
func findMistyped(text []byte) (found map[string]string, rest []byte) {
	var definition any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &definition); err != nil {
		return nil, nil
	}
	found = map[string]string{}
	nullMistyped(&definition, reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), "", found)
	rest, err := json.Marshal(definition)
	if err != nil {
		return nil, nil
	}
	return found, rest
}

// nullMistyped replaces each part of a value that has another type than its field by null.
func nullMistyped(value *any, t reflect.Type, path string, found map[string]string) {
	t = inUse(t, *value)
	switch v := (*value).(type) {
	case map[string]any:
		fields, isStruct := fieldsOf(t)
		if !isStruct && t.Kind() != reflect.Map {
			break
		}
		for name, child := range v {
			if !isStruct {
				nullMistyped(&child, t.Elem(), path+"["+name+"]", found)
			} else if field := fields[name]; field != nil {
				nullMistyped(&child, field, strings.TrimPrefix(path+"."+name, "."), found)
			}
			v[name] = child
		}
		return
	case []any:
		if t.Kind() != reflect.Slice || t.Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v {
			nullMistyped(&v[i], t.Elem(), path+"["+strconv.Itoa(i)+"]", found)
		}
		return
	}
	text, err := json.Marshal(*value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface())
	}
	if err != nil {
		*value, found[path] = nil, err.Error()
	}
}

// inUse returns the type that a value is decoded into. Pointers are followed, and so are the types
// that take a schema or something else
// (apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go).
func inUse(t reflect.Type, value any) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !decodesItself(t) {
		return t
	}
	var names []string
	switch value.(type) {
	case map[string]any:
		names = []string{"Schema"}
	case []any:
		names = []string{"JSONSchemas", "Property"}
	}
	for _, name := range names {
		if f, ok := t.FieldByName(name); ok {
			return inUse(f.Type, value)
		}
	}
	return t
}

// decodesItself reports whether a type has a method that decodes it.
func decodesItself(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(interface{ UnmarshalJSON([]byte) error })
	return ok
}

// fieldsOf returns the types of the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) (fields map[string]reflect.Type, isStruct bool) {
	if t.Kind() != reflect.Struct || decodesItself(t) {
		return nil, false
	}
	fields = map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	return fields, true
}

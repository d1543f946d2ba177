package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// findMistyped returns, by path, the decoder's messages for all values in the JSON of a definition
// that have another type than their fields; the server's decoder reports only the first, with a
// path that is wrong below items and additionalProperties. It also returns the JSON with null,
// which fits every field, in their place, so that the rest can be decoded.
func findMistyped(text []byte) (found map[string]string, rest []byte) {
	var definition any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()             // 3.0 is not an integer
	_ = decoder.Decode(&definition) // the text is JSON
	found = map[string]string{}
	nullMistyped(&definition, reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), "", found)
	rest, _ = json.Marshal(definition)
	return found, rest
}

// nullMistyped replaces each part of a value that has another type than its field by null.
func nullMistyped(value *any, t reflect.Type, path string, found map[string]string) {
	t = inUse(t, *value)
	switch v := (*value).(type) {
	case map[string]any:
		if t.Kind() != reflect.Map && (t.Kind() != reflect.Struct || jsontype.DecodesItself(t)) {
			break
		}
		fields := jsontype.FieldsOf(t)
		for name, child := range v {
			if t.Kind() == reflect.Map {
				nullMistyped(&child, t.Elem(), path+"["+name+"]", found)
			} else if field := fields.Named(name); field != nil {
				nullMistyped(&child, field.Type, strings.TrimPrefix(path+"."+name, "."), found)
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
	text, _ := json.Marshal(*value)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface()); err != nil {
		*value, found[path] = nil, err.Error()
	}
}

// inUse returns the type that a value is decoded into. Pointers are followed, and so are the types
// that take a schema or something else
// (apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go).
func inUse(t reflect.Type, value any) reflect.Type {
	t = jsontype.Pointed(t)
	if t.Kind() != reflect.Struct || !jsontype.DecodesItself(t) {
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

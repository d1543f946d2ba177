package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	kjson "sigs.k8s.io/json"
)

// mistyped is a value of another type than its field.
type mistyped struct {
	path, message, advice string
}

// findMistyped finds all values in the JSON of a definition that are of another type than
// their fields. The server's decoder reports only the first, with a path that leaves out the
// numbers of items and is wrong below items and additionalProperties. It also returns the
// JSON with null in their place, which fits every field, so that the rest can be decoded.
func findMistyped(version string, text []byte) (found []mistyped, rest []byte) {
	t := reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()
	if version == apiextensionsv1beta1.SchemeGroupVersion.String() {
		t = reflect.TypeFor[apiextensionsv1beta1.CustomResourceDefinition]()
	}
	var definition any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &definition); err != nil {
		return nil, nil
	}
	found = nullMistyped(&definition, t, "")
	rest, err := json.Marshal(definition)
	if err != nil {
		return nil, nil
	}
	return found, rest
}

// nullMistyped replaces, in a value that is to be of a type, what is of another type, and returns
// that.
func nullMistyped(value *any, t reflect.Type, path string) (found []mistyped) {
	t = inUse(t, *value)
	switch v := (*value).(type) {
	case map[string]any:
		fields, isStruct := fieldsOf(t)
		if !isStruct && t.Kind() != reflect.Map {
			break
		}
		for name, child := range v {
			if !isStruct {
				found = append(found, nullMistyped(&child, t.Elem(), path+"["+name+"]")...)
			} else if field := fields[name]; field != nil {
				found = append(found, nullMistyped(&child, field, strings.TrimPrefix(path+"."+name, "."))...)
			}
			v[name] = child
		}
		return found
	case []any:
		if t.Kind() != reflect.Slice || t.Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v {
			found = append(found, nullMistyped(&v[i], t.Elem(), path+"["+strconv.Itoa(i)+"]")...)
		}
		return found
	}
	text, err := json.Marshal(*value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(t).Interface())
	}
	if err != nil {
		*value = nil
		found = []mistyped{{path, err.Error(), "Give it " + wanted(t) + "."}}
	}
	return found
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

// wanted describes a value of a type as it is written in a file.
func wanted(t reflect.Type) string {
	switch t.Name() {
	case "JSONSchemaPropsOrBool":
		return "true, false, or a schema"
	case "Time":
		return "a time, such as 2019-07-03T02:00:00Z"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string: in YAML, quotes make one of a number, of true and of null"
	case reflect.Bool:
		return "true or false, without quotes"
	case reflect.Int32, reflect.Int64:
		return "a whole number, without quotes"
	case reflect.Float64:
		return "a number, without quotes"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "text in base64"
		}
		return "a list, such as [a]"
	case reflect.Map, reflect.Struct:
		if !decodesItself(t) {
			return "a mapping of names to values"
		}
	}
	return fmt.Sprintf("a value as the API wants it for %s", t.Name())
}

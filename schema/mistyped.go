package schema

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
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
	w := &typeWalk{decoder: tokens(text), text: text, fields: map[reflect.Type]map[string]reflect.Type{}}
	if err := w.value(t, ""); err != nil {
		return nil, nil
	}
	return w.found, append(w.rest, text[w.copied:]...)
}

// tokens returns a decoder that takes all JSON which encoding/json does.
func tokens(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// typeWalk walks through JSON and a Go type side by side.
type typeWalk struct {
	decoder *jsontext.Decoder
	text    []byte
	found   []mistyped
	rest    []byte
	copied  int // bytes of the text that are in the rest already
	fields  map[reflect.Type]map[string]reflect.Type
}

// value reads the next value, which is to be of a type.
func (w *typeWalk) value(t reflect.Type, path string) error {
	kind := w.decoder.PeekKind()
	t = inUse(t, kind)
	switch {
	case t == nil:
		return w.decoder.SkipValue()
	case kind == '{' && t.Kind() == reflect.Struct && !decodesItself(t):
		return w.members(path, func(name string) (reflect.Type, string) {
			return w.fieldsOf(t)[name], strings.TrimPrefix(path+"."+name, ".")
		})
	case kind == '{' && t.Kind() == reflect.Map:
		return w.members(path, func(name string) (reflect.Type, string) {
			return t.Elem(), path + "[" + name + "]"
		})
	case kind == '[' && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		if _, err := w.decoder.ReadToken(); err != nil {
			return err
		}
		for i := 0; w.decoder.PeekKind() != ']'; i++ {
			if err := w.value(t.Elem(), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
		_, err := w.decoder.ReadToken()
		return err
	}
	value, err := w.decoder.ReadValue()
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, reflect.New(t).Interface()); err != nil {
		end := int(w.decoder.InputOffset())
		w.rest = append(append(w.rest, w.text[w.copied:end-len(value)]...), "null"...)
		w.copied = end
		w.found = append(w.found, mistyped{path, err.Error(), "Give it " + wanted(t) + "."})
	}
	return nil
}

// members reads the members of an object. Their type and path are those that child returns.
func (w *typeWalk) members(path string, child func(name string) (reflect.Type, string)) error {
	if _, err := w.decoder.ReadToken(); err != nil {
		return err
	}
	for w.decoder.PeekKind() != '}' {
		name, err := w.decoder.ReadToken()
		if err != nil {
			return err
		}
		t, path := child(name.String())
		if err := w.value(t, path); err != nil {
			return err
		}
	}
	_, err := w.decoder.ReadToken()
	return err
}

// inUse returns the type that a value is decoded into if it begins so. Pointers are followed, and
// so are the types that take a schema or something else
// (apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go). It is nil if nothing is
// decoded.
func inUse(t reflect.Type, kind jsontext.Kind) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || !decodesItself(t) {
		return t
	}
	var names []string
	switch kind {
	case '{':
		names = []string{"Schema"}
	case '[':
		names = []string{"JSONSchemas", "Property"}
	}
	for _, name := range names {
		if f, ok := t.FieldByName(name); ok {
			return inUse(f.Type, kind)
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
func (w *typeWalk) fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields, ok := w.fields[t]
	if !ok {
		fields = map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				fields[name] = f.Type
			}
		}
		w.fields[t] = fields
	}
	return fields
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

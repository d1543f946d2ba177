// Package jsontype knows what encoding/json, and with it the API server's decoder, makes of Go types: which fields of a
// struct are in its JSON, and which types have methods for their own JSON.
package jsontype

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Field is a field of a struct in JSON. Its Index and Offset are those in the outer struct.
type Field struct {
	reflect.StructField
	JSON     string       // the name in JSON
	Tagged   bool         // whether the tag has the name
	Struct   reflect.Type // has the field: the outer struct, or one that is embedded in it
	Indirect bool         // whether a pointer embeds Struct, so that the Offset does not count
	Hidden   bool         // whether another field has the name instead, or neither
	options  string       // in the tag
}

// Has reports whether the tag has an option, such as omitempty.
func (f *Field) Has(option string) bool {
	return f.options != "" && slices.Contains(strings.Split(f.options, ","), option)
}

// Fields are those of one struct.
type Fields []*Field

// FieldsOf returns the fields that a struct has in JSON, in the order of encoding/json; nil for another type.
func FieldsOf(t reflect.Type) Fields {
	return slices.DeleteFunc(AllFields(t), func(f *Field) bool { return f.Hidden })
}

// Named returns the field with a name in JSON, or nil.
func (fields Fields) Named(name string) *Field {
	for _, f := range fields {
		if f.JSON == name {
			return f
		}
	}
	return nil
}

// AllFields is like FieldsOf, with the hidden fields.
func AllFields(t reflect.Type) Fields {
	if t.Kind() != reflect.Struct {
		return nil
	}
	all := appendFields(nil, &Field{Struct: t}, nil)
	for _, f := range all {
		for _, g := range all { // encoding/json, dominantField
			if f.JSON == g.JSON && f != g && (len(g.Index) < len(f.Index) || len(g.Index) == len(f.Index) && (g.Tagged || !f.Tagged)) {
				f.Hidden = true
			}
		}
	}
	return all
}

// appendFields appends the fields of a struct that is embedded in others.
func appendFields(all Fields, in *Field, within []reflect.Type) Fields {
	within = append(slices.Clip(within), in.Struct)
	for f := range in.Struct.Fields() {
		if f.Offset += in.Offset; in.Index != nil {
			f.Index = slices.Concat(in.Index, f.Index)
		}
		name, inner := Name(f), embedded(f)
		tag, options, more := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" && !more || !f.IsExported() && inner == nil:
		case name != "":
			all = append(all, &Field{StructField: f, JSON: name, Tagged: name == tag, Struct: in.Struct, Indirect: in.Indirect, options: options})
		case !slices.Contains(within, inner):
			all = appendFields(all, &Field{StructField: f, Struct: inner, Indirect: in.Indirect || inner != f.Type}, within)
		}
	}
	return all
}

// embedded returns the struct that a field embeds, or nil.
func embedded(f reflect.StructField) reflect.Type {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !f.Anonymous || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// Name returns the name of a field in JSON, which is empty if the fields of an embedded struct are in its place. For a field
// that JSON does not have, it is the one in the tag, or else in Go.
func Name(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	wrong := func(r rune) bool { // encoding/json, isValidTag
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
	}
	switch {
	case name != "" && !strings.ContainsFunc(name, wrong):
		return name
	case embedded(f) != nil:
		return ""
	}
	return f.Name
}

// Pointed returns a type without pointers.
func Pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// DecodesItself reports whether a type has UnmarshalJSON or UnmarshalText.
func DecodesItself(t reflect.Type) bool {
	return has[json.Unmarshaler](t) || has[encoding.TextUnmarshaler](t)
}

// EncodesItself reports whether a type has MarshalJSON or MarshalText.
func EncodesItself(t reflect.Type) bool {
	return has[json.Marshaler](t) || has[encoding.TextMarshaler](t)
}

// has reports whether a type or a pointer to it has the methods of I.
func has[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}

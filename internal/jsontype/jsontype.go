// Package jsontype knows what encoding/json, and with it the API server's decoder, makes of Go types: which fields of a
// struct are in its JSON, and which types have methods for their own JSON.
package jsontype

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
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
type Fields []Field

// FieldsOf returns the fields that a struct has in JSON, in the order of encoding/json; nil for another type. The result is
// shared, and must not be changed.
func FieldsOf(t reflect.Type) Fields {
	all := AllFields(t)
	hidden := func(f Field) bool { return f.Hidden }
	if slices.ContainsFunc(all, hidden) {
		all = slices.DeleteFunc(slices.Clone(all), hidden)
	}
	return all
}

// Named returns the field with a name in JSON, or nil.
func (fields Fields) Named(name string) *Field {
	for i := range fields {
		if fields[i].JSON == name {
			return &fields[i]
		}
	}
	return nil
}

var known sync.Map // Fields by reflect.Type

// AllFields is like FieldsOf, with the hidden fields.
func AllFields(t reflect.Type) Fields {
	if t.Kind() != reflect.Struct {
		return nil
	}
	if fields, ok := known.Load(t); ok {
		return fields.(Fields)
	}
	all := appendFields(make(Fields, 0, t.NumField()+1), Field{Struct: t}) // a TypeMeta has two
	for i := range all {
		for j := range all { // encoding/json, dominantField
			f, g := &all[i], &all[j]
			if f.JSON == g.JSON && i != j && (len(g.Index) < len(f.Index) || len(g.Index) == len(f.Index) && (g.Tagged || !f.Tagged)) {
				f.Hidden = true
			}
		}
	}
	known.Store(t, all)
	return all
}

// appendFields appends the fields of a struct that is embedded in others.
func appendFields(all Fields, in Field, within ...reflect.Type) Fields {
	for i := range in.Struct.NumField() {
		f := in.Struct.Field(i)
		if f.Offset += in.Offset; in.Index != nil {
			f.Index = slices.Concat(in.Index, f.Index)
		}
		tag, options, more := strings.Cut(f.Tag.Get("json"), ",")
		name, inner := nameOf(&f, tag), embedded(&f)
		switch {
		case tag == "-" && !more || !f.IsExported() && inner == nil:
		case name != "":
			all = append(all, Field{StructField: f, JSON: name, Tagged: name == tag, Struct: in.Struct, Indirect: in.Indirect, options: options})
		case inner != in.Struct && !slices.Contains(within, inner):
			next := Field{StructField: f, Struct: inner, Indirect: in.Indirect || inner != f.Type}
			all = appendFields(all, next, append(within, in.Struct)...)
		}
	}
	return all
}

// embedded returns the struct that a field embeds, or nil.
func embedded(f *reflect.StructField) reflect.Type {
	if t := Pointed(f.Type); f.Anonymous && t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

// Name returns the name of a field in JSON, which is empty if the fields of an embedded struct are in its place. For a field
// that JSON does not have, it is the one in the tag, or else in Go.
func Name(f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return nameOf(&f, tag)
}

func nameOf(f *reflect.StructField, tag string) string {
	wrong := func(r rune) bool { // encoding/json, isValidTag
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
	}
	switch {
	case tag != "" && !strings.ContainsFunc(tag, wrong):
		return tag
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

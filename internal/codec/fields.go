package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// structField is a field of a struct, or of a struct that is embedded in it.
type structField struct {
	name    string // in JSON
	options string // in the tag
	goType  reflect.Type
	offset  uintptr // in the outer struct
}

// fieldsOf returns the fields of a struct in JSON; ok is false if something is unusual, such as two
// fields of one name.
func fieldsOf(t reflect.Type) (fields []structField, ok bool) {
	seen := map[string]bool{}
	var walk func(t reflect.Type, offset uintptr) bool
	walk = func(t reflect.Type, offset uintptr) bool {
		for i := range t.NumField() {
			f := t.Field(i)
			tag := f.Tag.Get("json")
			name, options, _ := strings.Cut(tag, ",")
			switch {
			case f.Anonymous && !f.IsExported():
				return false // some of its fields count, and with a name it does itself
			case f.Anonymous && name == "":
				if f.Type.Kind() != reflect.Struct || !walk(f.Type, offset+f.Offset) {
					return false
				}
				continue
			case !f.IsExported() || tag == "-":
				continue
			case name == "":
				name = f.Name
			}
			if seen[name] || !plainName(name) || hasOption(options, "string") {
				return false
			}
			seen[name] = true
			fields = append(fields, structField{name, options, f.Type, offset + f.Offset})
		}
		return true
	}
	ok = walk(t, 0) && len(fields) <= 64
	return fields, ok
}

// plainName reports whether encoding/json takes a name in a tag as it is.
func plainName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || '9' < r) && (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r)
	}) < 0
}

// DecodesItself reports whether a type has a decoder of its own.
func DecodesItself(t reflect.Type) bool {
	return has[json.Unmarshaler](t) || has[encoding.TextUnmarshaler](t)
}

// has reports whether a type or a pointer to it has the methods of I.
func has[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}

// under returns the paths that lead below a member, without its name, and reports whether one is the
// member itself.
func under(paths []string, name string) (below []string, it bool) {
	for _, path := range paths {
		first, rest, deeper := strings.Cut(path, ".")
		switch {
		case first != name:
		case deeper:
			below = append(below, rest)
		default:
			it = true
		}
	}
	return below, it
}

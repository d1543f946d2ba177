package roundtrip

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// drift returns all differences at once, without any objects.
func (s *subject) drift() []string {
	version := s.path[0]
	structural := s.definition.Version(version).Structural()
	if structural == nil {
		return nil // with preserveUnknownFields, the schema has no fields
	}
	return drift(s.registry.Scheme().AllKnownTypes()[s.kind.WithVersion(version)], structural)
}

// drift compares a Go type with a structural schema, and returns, by path, the fields that only one
// of them has, and the fields whose values the type cannot hold. It looks neither into types with
// UnmarshalJSON nor into metadata.
func drift(t reflect.Type, s *structuralschema.Structural) (found []string) {
	report := func(path, format string, args ...any) {
		found = append(found, path+": "+fmt.Sprintf(format, args...))
	}
	visit("", t, s.DeepCopy(), func(path string, t reflect.Type, s *structuralschema.Structural) {
		want := s.Type
		if s.XIntOrString {
			want = "integer or string"
		}
		switch empty := len(s.Properties) == 0 && !open(s); {
		case custom(t) || t.Kind() == reflect.Interface || want == "" && path != "":
		case path != "" && !holds(t, want):
			report(path, "the schema says %s, and %v cannot hold that", want, t)
		case t == reflect.TypeFor[metav1.ObjectMeta]():
			// By default, controller-gen writes a schema with no fields, or a few.
			if empty && path != "metadata" {
				report(path, "the schema has no fields for the metadata: the API server prunes all of it (controller-gen: generateEmbeddedObjectMeta=true)")
			}
		case t.Kind() == reflect.Map && empty:
			report(path+each, "%v has members, and the schema allows none: the API server prunes them", t)
		case t.Kind() == reflect.Struct:
			fields := fieldsOf(t)
			for name := range s.Properties {
				if fields[name] == nil {
					report(join(path, name), "the schema has it, and no field of %v can hold it", t)
				}
			}
			for name := range fields {
				_, ok := s.Properties[name]
				always := path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name)
				if !ok && !open(s) && !always {
					report(join(path, name), "%v has it, and the schema does not: the API server prunes it", t)
				}
			}
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// visitor is called for a part of a Go type and its schema, which it may change.
type visitor func(path string, t reflect.Type, s *structuralschema.Structural)

// visit visits each part of a Go type. It ends even for types that contain themselves, because a
// schema is a tree.
func visit(path string, t reflect.Type, s *structuralschema.Structural, do visitor) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if do(path, t, s); custom(t) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for name, field := range fieldsOf(t) {
			if property, ok := s.Properties[name]; ok {
				visit(join(path, name), field, &property, do)
				s.Properties[name] = property
			}
		}
	case reflect.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			visit(path+each, t.Elem(), s.AdditionalProperties.Structural, do)
		}
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			visit(path+each, t.Elem(), s.Items, do)
		}
	}
}

// open reports whether a schema preserves unknown fields.
func open(s *structuralschema.Structural) bool {
	return s.XPreserveUnknownFields || s.XEmbeddedResource || s.AdditionalProperties != nil
}

// holds reports whether a Go type can hold a type of a schema, regardless of the range of numbers.
func holds(t reflect.Type, want string) bool {
	switch k := t.Kind(); k {
	case reflect.Bool:
		return want == "boolean"
	case reflect.String:
		return want == "string"
	case reflect.Float32, reflect.Float64:
		return want == "integer" || want == "number"
	case reflect.Slice, reflect.Array:
		return want == "array" || want == "string" && t == reflect.TypeFor[[]byte]()
	case reflect.Map, reflect.Struct:
		return want == "object"
	default:
		return want == "integer" && k >= reflect.Int && k <= reflect.Uint64
	}
}

// custom reports whether a type has UnmarshalJSON.
func custom(t reflect.Type) bool {
	unmarshaler := reflect.TypeFor[json.Unmarshaler]()
	return t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler)
}

// fieldsOf returns the types of a struct's fields by the names that JSON gives them. It includes
// those of an embedded struct without a JSON name, unless a field that is less deep hides them.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name := jsonName(f); name != "" {
			if f.IsExported() && name != "-" {
				fields[name] = f.Type
			}
			continue
		}
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if embedded.Kind() != reflect.Struct {
			continue
		}
		for name, field := range fieldsOf(embedded) {
			if fields[name] == nil {
				fields[name] = field
			}
		}
	}
	return fields
}

package roundtrip

import (
	"fmt"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/internal/jsontype"
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
// of them has, and the fields whose values the type cannot hold. It looks neither into types that
// decode themselves nor into metadata.
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
		case jsontype.DecodesItself(t) || t.Kind() == reflect.Interface || want == "" && path != "":
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
			fields := jsontype.FieldsOf(t)
			for name := range s.Properties {
				if fields.Named(name) == nil {
					report(join(path, name), "the schema has it, and no field of %v can hold it", t)
				}
			}
			for _, f := range fields {
				_, ok := s.Properties[f.JSON]
				always := path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata"}, f.JSON)
				if !ok && !open(s) && !always {
					report(join(path, f.JSON), "%v has it, and the schema does not: the API server prunes it", t)
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
	t = jsontype.Pointed(t)
	if do(path, t, s); jsontype.DecodesItself(t) {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range jsontype.FieldsOf(t) {
			if property, ok := s.Properties[f.JSON]; ok {
				visit(join(path, f.JSON), f.Type, &property, do)
				s.Properties[f.JSON] = property
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

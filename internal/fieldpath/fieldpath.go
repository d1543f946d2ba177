// Package fieldpath reads the paths by which users name fields of an object, and checks
// them against Go types.
//
//	spec.toppings[*].name
//	metadata.annotations['example.com/menu']
//
// [*] is every element of a list, or every value of a map, and ['…'] is one value of a
// map. A leading dot is allowed, as the columns of a CustomResourceDefinition have it.
package fieldpath

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// Step is one step of a path: into a field, to one value of a map, or to all.
type Step struct {
	Name string
	Key  bool // ['name']
	All  bool // [*]
}

// Parse reads a path. The error names it.
func Parse(path string) (steps []Step, err error) {
	fault := func(why string) ([]Step, error) { return nil, fmt.Errorf("%q: %s", path, why) }
	rest := "." + strings.TrimPrefix(path, ".")
	for rest != "" {
		switch {
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			name := rest[1:end]
			if strings.Contains(name, "/") {
				return fault("a key with a slash needs the form ['…']")
			}
			if name == "" || strings.ContainsAny(name, "]*'") {
				return fault("expected a field name without ], * and quotes")
			}
			steps, rest = append(steps, Step{Name: name}), rest[end:]
		case strings.HasPrefix(rest, "[*]"):
			steps, rest = append(steps, Step{All: true}), rest[len("[*]"):]
		case strings.HasPrefix(rest, "['"):
			key, after, found := strings.Cut(rest[len("['"):], "']")
			if !found || key == "" {
				return fault("expected a key in the form ['…']")
			}
			steps, rest = append(steps, Step{Name: key, Key: true}), after
		default:
			return fault("expected [*] or ['…'], followed by a dot or a bracket")
		}
	}
	return steps, nil
}

// Check returns an error, which names the path, if a type has no such path. An unstructured object
// may have any.
func Check(t reflect.Type, path string, steps []Step) error {
	if t = jsontype.Pointed(t); t == reflect.TypeFor[unstructured.Unstructured]() {
		return nil
	}
	for _, s := range steps {
		switch t = jsontype.Pointed(t); {
		case jsontype.EncodesItself(t):
			return fmt.Errorf("%s: %s has no fields", path, t)
		case s.All && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
			t = t.Elem()
		case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
			t = t.Elem()
		case s.All || s.Key:
			return fmt.Errorf("%s: %s is not a list or map", path, t)
		case t.Kind() == reflect.Struct:
			f := jsontype.FieldsOf(t).Named(s.Name)
			if f == nil {
				return fmt.Errorf("%s: %s has no field %q", path, t, s.Name)
			}
			t = f.Type
		default:
			return fmt.Errorf("%s: %s has no fields", path, t)
		}
	}
	return nil
}

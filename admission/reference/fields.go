package reference

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/internal/jsontype"
)

// Field is a field of an object that holds references. Its paths are JSON paths of this form:
//
//	spec.toppings[*].name
//	spec.ovens[*].fuel.secretRef.name
//	metadata.annotations['example.com/menu']
//
// In a path, [*] stands for every element of a list, or every value of a map. ['…'] selects
// one value of a map. A path may begin with a dot, like the paths of a
// CustomResourceDefinition's additionalPrinterColumns.
type Field struct {
	// Name is the path of the string that holds the target's name. An empty name is not a
	// reference.
	Name string
	// Namespace is the path of the target's namespace, a string. If the path or its value is empty,
	// the namespace of the referrer is used. If Namespace has a [*], Name must begin with the part
	// of Namespace up to its last [*], so that both are in the same element.
	Namespace string
	// Optional means that the targets need not exist; see [Ref].
	Optional bool
}

// Fields returns a function that finds the references in the given fields of an object of type
// T. A path without a value, and a value that is not a string, are not references.
//
// Fields returns an error in these cases, and joins the errors of all fields:
//
//   - No Field is given, or T is not a pointer to a struct.
//   - A path cannot be parsed, or does not lead to a string, according to the JSON tags of T.
//   - The Namespace of a field has a [*], and the part up to its last [*] is not a prefix of
//     Name.
//
// If T is *unstructured.Unstructured, Fields can only check paths of labels and annotations. For an
// object that has a list where the path has no [*], [Exists] denies the request with a field error
// at the list, and [Referrers.Ready] returns an error from then on.
func Fields[T runtime.Object](fields ...Field) (func(obj T) []Ref, error) {
	t := reflect.TypeFor[T]()
	var errs []error
	if len(fields) == 0 {
		errs = append(errs, errors.New("no fields"))
	}
	if t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("reference: the fields of %s: not a pointer to a struct", t)
	}
	finders := make([]finder, len(fields))
	for i, f := range fields {
		var err error
		if finders[i], err = newFinder(t.Elem(), f); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("reference: the fields of %s: %w", t, err)
	}
	return func(obj T) []Ref {
		root := reflect.ValueOf(obj)
		if u, ok := any(obj).(*unstructured.Unstructured); ok {
			root = reflect.ValueOf(u.Object)
		}
		var refs []Ref
		for _, f := range finders {
			refs = f.find(root, refs)
		}
		return refs
	}, nil
}

// finder finds the references of one field.
type finder struct {
	common          []fieldpath.Step // to the element that holds name and namespace
	name, namespace []fieldpath.Step // from that element
	hasNamespace    bool
	field           Field
}

func newFinder(t reflect.Type, f Field) (finder, error) {
	name, err := parse(t, f.Name)
	found := finder{name: name, field: f, hasNamespace: f.Namespace != ""}
	if err != nil || !found.hasNamespace {
		return found, err
	}
	namespace, err := parse(t, f.Namespace)
	if err != nil {
		return found, err
	}
	n := 0 // steps up to the last [*]
	for i, s := range namespace {
		if s.All {
			n = i + 1
		}
	}
	if n > len(name) || !slices.EqualFunc(name[:n], namespace[:n], func(a, b fieldpath.Step) bool { return a.All == b.All && a.Name == b.Name }) {
		return found, fmt.Errorf("%s: expected the same path as %s up to the last [*]", f.Namespace, f.Name)
	}
	found.common, found.name, found.namespace = name[:n], name[n:], namespace[n:]
	return found, nil
}

func (f finder) find(root reflect.Value, refs []Ref) []Ref {
	walk(root, f.common, nil, func(element reflect.Value, at *field.Path) {
		var namespace string
		if f.hasNamespace {
			walk(element, f.namespace, at, func(v reflect.Value, at *field.Path) {
				switch v.Kind() {
				case reflect.String:
					namespace = v.String()
				case reflect.Slice:
					refs = append(refs, inList(at, f.field.Namespace))
				}
			})
		}
		walk(element, f.name, at, func(v reflect.Value, at *field.Path) {
			switch {
			case v.Kind() == reflect.Slice:
				refs = append(refs, inList(at, f.field.Name))
			case v.Kind() == reflect.String && v.Len() > 0:
				refs = append(refs, Ref{Path: at, Namespace: namespace, Name: v.String(), Optional: f.field.Optional})
			}
		})
	})
	return refs
}

// inList returns a Ref for a path that lacks a [*] at a list.
func inList(at *field.Path, path string) Ref {
	return Ref{Path: at, problem: fmt.Sprintf("a list, and the path %s of a reference has no [*] for it", path)}
}

// parse parses a path, and checks that it leads to strings in a type.
func parse(t reflect.Type, path string) ([]fieldpath.Step, error) {
	steps, err := fieldpath.Parse(path)
	if err != nil {
		return nil, err
	}
	switch t, err = fieldpath.Resolve(t, path, steps); {
	case err != nil:
		return nil, err
	case t != nil && (t.Kind() != reflect.String || jsontype.EncodesItself(t)):
		return nil, fmt.Errorf("%s: type %s, expected a string", path, t)
	}
	return steps, nil
}

// into returns the path after a step.
func into(at *field.Path, s fieldpath.Step) *field.Path {
	if s.Key {
		return at.Key(s.Name)
	}
	return at.Child(s.Name)
}

// walk visits all values at the end of the steps, and lists where the steps have no [*].
func walk(v reflect.Value, steps []fieldpath.Step, at *field.Path, visit func(reflect.Value, *field.Path)) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if len(steps) == 0 {
		visit(v, at)
		return
	}
	s, rest := steps[0], steps[1:]
	switch kind := v.Kind(); {
	case s.All && (kind == reflect.Slice || kind == reflect.Array):
		for i := range v.Len() {
			walk(v.Index(i), rest, at.Index(i), visit)
		}
	case s.All && kind == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			walk(v.MapIndex(key), rest, at.Key(key.String()), visit)
		}
	case kind == reflect.Slice:
		visit(v, at)
	case s.All:
	case kind == reflect.Struct:
		if f, err := v.FieldByIndexErr(s.Index); err == nil { // an inlined pointer may be nil
			walk(f, rest, into(at, s), visit)
		}
	case kind == reflect.Map:
		walk(v.MapIndex(reflect.ValueOf(s.Name).Convert(v.Type().Key())), rest, into(at, s), visit)
	}
}

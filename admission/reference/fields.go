package reference

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Field says where an object holds references, by paths of its JSON:
//
//	spec.toppings[*].name
//	spec.ovens[*].fuel.secretRef.name
//	metadata.annotations['example.com/menu']
//
// where [*] is every element of a list, or every value of a map, and ['…'] is one
// value of a map. A leading dot is allowed, as the columns of a
// CustomResourceDefinition have it.
type Field struct {
	// Name is the path of the name of what is referred to, a string.
	Name string
	// Namespace is the path of its namespace, a string; none if it is always the
	// object's own. If it has a [*], it must be the same as Name up to there: the
	// two then are of the same element.
	Namespace string
	// Optional references may lead to nothing: see [Ref].
	Optional bool
}

// Fields returns a function that finds the references of an object of type T, at
// all the fields. A field that an object does not have holds no reference, nor does
// one that is no string.
//
// It is an error if a path cannot be read, or if T, a pointer to a struct, does not
// have it by its JSON tags. All faults are joined. Of *unstructured.Unstructured
// nothing is known before there is an object, but that labels and annotations are
// strings: so metadata.annotations.example.com/menu is a fault.
func Fields[T runtime.Object](fields ...Field) (func(obj T) []Ref, error) {
	t := reflect.TypeFor[T]()
	var errs []error
	if len(fields) == 0 {
		errs = append(errs, errors.New("there is none"))
	}
	if t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("reference: the fields of %s: it is not a pointer to a struct", t)
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

// finder finds the references at one field.
type finder struct {
	common          []step // to the element that holds both
	name, namespace []step // from there
	hasNamespace    bool
	optional        bool
}

func newFinder(t reflect.Type, f Field) (finder, error) {
	name, err := parsePath(f.Name)
	err = errors.Join(err, resolve(t, f.Name, name))
	found := finder{name: name, optional: f.Optional, hasNamespace: f.Namespace != ""}
	if err != nil || !found.hasNamespace {
		return found, err
	}
	namespace, err := parsePath(f.Namespace)
	if err = errors.Join(err, resolve(t, f.Namespace, namespace)); err != nil {
		return found, err
	}
	n := 0 // steps up to the last [*]
	for i, s := range namespace {
		if s.all {
			n = i + 1
		}
	}
	if n > len(name) || !slices.EqualFunc(name[:n], namespace[:n], func(a, b step) bool { return a.all == b.all && a.name == b.name }) {
		return found, fmt.Errorf("%s: it must be the same as %s up to its last [*]", f.Namespace, f.Name)
	}
	found.common, found.name, found.namespace = name[:n], name[n:], namespace[n:]
	return found, nil
}

func (f finder) find(root reflect.Value, refs []Ref) []Ref {
	walk(root, f.common, nil, func(element reflect.Value, at *field.Path) {
		var namespace string
		if f.hasNamespace {
			walk(element, f.namespace, nil, func(v reflect.Value, _ *field.Path) {
				if v.Kind() == reflect.String {
					namespace = v.String()
				}
			})
		}
		walk(element, f.name, at, func(v reflect.Value, at *field.Path) {
			if v.Kind() == reflect.String && v.Len() > 0 {
				refs = append(refs, Ref{Path: at, Namespace: namespace, Name: v.String(), Optional: f.optional})
			}
		})
	})
	return refs
}

// step is one step of a path: into a field, to one value of a map, or to all.
type step struct {
	name  string
	key   bool  // ['name']
	all   bool  // [*]
	index []int // of the field, in a struct
}

func (s step) of(p *field.Path) *field.Path {
	if s.key {
		return p.Key(s.name)
	}
	return p.Child(s.name)
}

func parsePath(path string) (steps []step, err error) {
	fault := func(why string) ([]step, error) { return nil, fmt.Errorf("%q: %s", path, why) }
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
				return fault("a field has no name, or an odd one")
			}
			steps, rest = append(steps, step{name: name}), rest[end:]
		case strings.HasPrefix(rest, "[*]"):
			steps, rest = append(steps, step{all: true}), rest[len("[*]"):]
		case strings.HasPrefix(rest, "['"):
			key, after, found := strings.Cut(rest[len("['"):], "']")
			if !found || key == "" {
				return fault("a key is not closed, or empty")
			}
			steps, rest = append(steps, step{name: key, key: true}), after
		default:
			return fault("brackets hold * or a key in single quotes, and a dot or a bracket follows")
		}
	}
	return steps, nil
}

// resolve finds the steps of a path in a type, and notes which fields they are.
func resolve(t reflect.Type, path string, steps []step) error {
	if t == reflect.TypeFor[unstructured.Unstructured]() {
		if len(steps) > 3 && steps[0].name == "metadata" && (steps[1].name == "annotations" || steps[1].name == "labels") {
			return fmt.Errorf("%s: the values of %s are strings; a key with a dot needs the form ['…']", path, steps[1].name)
		}
		return nil
	}
	for i := range steps {
		s := &steps[i]
		t = pointedTo(t)
		switch {
		case opaque(t):
			return fmt.Errorf("%s: %s has no fields", path, t)
		case s.all && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
			t = t.Elem()
		case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
			t, s.key = t.Elem(), !s.all
		case s.all || s.key:
			return fmt.Errorf("%s: %s is no list or map", path, t)
		case t.Kind() == reflect.Struct:
			f, ok := jsonField(t, s.name)
			if !ok {
				return fmt.Errorf("%s: %s has no field %q", path, t, s.name)
			}
			t, s.index = f.Type, f.Index
		default:
			return fmt.Errorf("%s: %s has no fields", path, t)
		}
	}
	if t = pointedTo(t); len(steps) > 0 && (t.Kind() != reflect.String || opaque(t)) {
		return fmt.Errorf("%s: it is a %s, not a string", path, t)
	}
	return nil
}

func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// opaque says whether the JSON of a type is made by its own method.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// jsonField finds the field of a struct by its name in JSON, also one of a struct
// that is inlined.
func jsonField(t reflect.Type, name string) (reflect.StructField, bool) {
	var inlined []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" && options == "":
		case tag == "" && f.Anonymous && pointedTo(f.Type).Kind() == reflect.Struct:
			inlined = append(inlined, f)
		case !f.IsExported():
		case tag == name, tag == "" && f.Name == name:
			return f, true
		}
	}
	for _, outer := range inlined {
		if f, ok := jsonField(pointedTo(outer.Type), name); ok {
			f.Index = slices.Concat(outer.Index, f.Index)
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// walk visits all values to which the steps lead.
func walk(v reflect.Value, steps []step, at *field.Path, visit func(reflect.Value, *field.Path)) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if len(steps) == 0 {
		visit(v, at)
		return
	}
	s, rest := steps[0], steps[1:]
	switch kind := v.Kind(); {
	case s.all && (kind == reflect.Slice || kind == reflect.Array):
		for i := range v.Len() {
			walk(v.Index(i), rest, at.Index(i), visit)
		}
	case s.all && kind == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			walk(v.MapIndex(key), rest, at.Key(key.String()), visit)
		}
	case s.all:
	case kind == reflect.Struct:
		if f, err := v.FieldByIndexErr(s.index); err == nil { // an inlined pointer may be nil
			walk(f, rest, s.of(at), visit)
		}
	case kind == reflect.Map:
		walk(v.MapIndex(reflect.ValueOf(s.name).Convert(v.Type().Key())), rest, s.of(at), visit)
	}
}

package roundtrip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/dump"

	"github.com/crdkit/crdkit/conversion"
)

// normalizer makes objects of a type equal that mean the same.
type normalizer struct {
	reason    string
	object    reflect.Type
	normalize func(runtime.Object)
}

// Normalize declares that objects of type T are equal if they are after normal, which changes
// an object in place: it sorts a list whose order does not matter, fills in what absence
// means, or clears a field that does not come back. The reason is part of the output; it must
// not be empty.
//
// T is a pointer to a Go type in the registry's scheme, or [unstructured.Unstructured], which
// stands for each version without a Go type.
func Normalize[T runtime.Object](reason string, normal func(T)) Option {
	return func(c *config) {
		if reason == "" || normal == nil {
			c.fault("roundtrip.Normalize: it needs a reason and a function, and has %q and %v", reason, normal != nil)
			return
		}
		c.normalizers = append(c.normalizers, normalizer{reason, reflect.TypeFor[T](), func(obj runtime.Object) { normal(obj.(T)) }})
	}
}

// checkNormalizers returns an error for each normalizer of a type that is not converted.
func (c *config) checkNormalizers(s *runtime.Scheme, all []conversion.Kind) error {
	converted := func(gvk schema.GroupVersionKind) bool {
		return slices.ContainsFunc(all, func(k conversion.Kind) bool {
			return k.GroupKind == gvk.GroupKind() && (gvk.Version == k.Hub || slices.Contains(k.Versions, gvk.Version))
		})
	}
	var faults []error
	for _, n := range c.normalizers {
		if n.object == reflect.TypeFor[*unstructured.Unstructured]() {
			continue
		}
		kinds, _, err := s.ObjectKinds(reflect.New(n.object.Elem()).Interface().(runtime.Object))
		if err != nil {
			faults = append(faults, fmt.Errorf("roundtrip.Normalize: %w", err))
		} else if !slices.ContainsFunc(kinds, converted) {
			faults = append(faults, fmt.Errorf("roundtrip.Normalize: the test does not convert %v", n.object))
		}
	}
	return errors.Join(faults...)
}

// declared returns the reasons of the normalizers that the subject uses: those of the version
// that its path ends with.
func (s *subject) declared() (all []string) {
	if s.checkValue != nil && s.law != RoundTrip {
		return nil
	}
	version := s.path[len(s.path)-1]
	for _, n := range s.normalizers(version) {
		all = append(all, fmt.Sprintf("%s is compared after roundtrip.Normalize: %s", version, n.reason))
	}
	return all
}

func (s *subject) normalizers(version string) []normalizer {
	want := reflect.TypeFor[*unstructured.Unstructured]()
	if t, typed := s.registry.Scheme().AllKnownTypes()[s.kind.WithVersion(version)]; typed {
		want = reflect.PointerTo(t)
	}
	return slices.DeleteFunc(slices.Clone(s.cfg.normalizers), func(n normalizer) bool { return n.object != want })
}

// compare returns how two objects of a version differ; nil if they do not, or only in what
// the options allow.
func (s *subject) compare(version string, want, got []byte) *failure {
	asIs := compare(want, got)
	normalizers := s.normalizers(version)
	if asIs == nil || len(normalizers) == 0 {
		return asIs
	}
	normalized := func(object []byte) ([]byte, error) {
		obj := runtime.Object(&unstructured.Unstructured{})
		if kind := s.kind.WithVersion(version); s.registry.Scheme().Recognizes(kind) {
			var err error
			if obj, err = s.registry.Scheme().New(kind); err != nil {
				return nil, err
			}
		}
		if err := json.Unmarshal(object, obj); err != nil {
			return nil, err
		}
		for _, n := range normalizers {
			n.normalize(obj)
		}
		return json.Marshal(obj)
	}
	want, errWant := normalized(want)
	got, errGot := normalized(got)
	if err := errors.Join(errWant, errGot); err != nil {
		return &failure{err: err}
	}
	return compare(want, got)
}

// same returns how an object that has come back to the version it started from differs
// from what it was. A Go type may write more than it has read: a struct without omitzero is
// always there. That is not the fault of the conversion.
func (s *subject) same(object, got []byte) *failure {
	version := s.path[0]
	asIs := s.compare(version, object, got)
	kind := s.kind.WithVersion(version)
	if asIs == nil || !s.registry.Scheme().Recognizes(kind) {
		return asIs
	}
	written, err := rewrite(s.registry.Scheme(), kind, object)
	if err != nil {
		return asIs
	}
	return s.compare(version, written, got)
}

// compare returns how got differs from want; nil if it does not. null, [] and {} and absence
// all differ, and so do 1 and 1.0. The order of members does not count.
func compare(want, got []byte) *failure {
	w, errWant := decodeExactly(want)
	g, errGot := decodeExactly(got)
	if err := errors.Join(errWant, errGot); err != nil {
		return &failure{err: err}
	}
	if reflect.DeepEqual(w, g) {
		return nil
	}
	return &failure{diff: func() string { return diffJSON(w, g) }}
}

// decodeExactly decodes JSON, and keeps the text of numbers.
func decodeExactly(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// sameValue reports whether two Go values are equal as
// [k8s.io/apimachinery/pkg/api/equality.Semantic] has it, unexported fields included. Unless
// strict, nil equals empty. It is several times faster than equality.Semantic.
func sameValue(a, b any, strict bool) bool {
	return sameReflected(reflect.ValueOf(a), reflect.ValueOf(b), strict)
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

func sameReflected(a, b reflect.Value, strict bool) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameReflected(a.Elem(), b.Elem(), strict)
	case reflect.Struct:
		switch t := a.Type(); {
		case t == timeType && a.CanInterface() && b.CanInterface():
			return pointerTo[time.Time](a).Equal(*pointerTo[time.Time](b))
		case t == quantityType && a.CanInterface() && b.CanInterface():
			return pointerTo[resource.Quantity](a).Cmp(*pointerTo[resource.Quantity](b)) == 0
		}
		for i := range a.NumField() {
			if !sameReflected(a.Field(i), b.Field(i), strict) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() || strict && a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
			return false
		}
		if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Uint8 {
			return bytes.Equal(a.Bytes(), b.Bytes())
		}
		for i := range a.Len() {
			if !sameReflected(a.Index(i), b.Index(i), strict) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() || strict && a.IsNil() != b.IsNil() {
			return false
		}
		for all := a.MapRange(); all.Next(); {
			other := b.MapIndex(all.Key())
			if !other.IsValid() || !sameReflected(all.Value(), other, strict) {
				return false
			}
		}
		return true
	case reflect.Func, reflect.Chan, reflect.UnsafePointer: // JSON has none
		return a.IsZero() && b.IsZero()
	}
	return a.Equal(b)
}

// pointerTo returns a pointer to a value, or to a copy of it.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	return new(v.Interface().(T))
}

// differ returns how two objects differ that are not the same: by their JSON, or by what
// that does not show.
func differ(want, got runtime.Object) *failure {
	wanted, errWant := json.Marshal(want)
	text, errGot := json.Marshal(got)
	if errWant == nil && errGot == nil {
		if f := compare(wanted, text); f != nil {
			return f
		}
	}
	// Now: others may use the memory of the objects again.
	diff := diffTexts(dump.OneLine(want), dump.OneLine(got))
	return &failure{diff: func() string { return diff }}
}

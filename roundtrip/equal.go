package roundtrip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/dump"

	"github.com/crdkit/crdkit/conversion"
)

// normalizer is an option [Normalize].
type normalizer struct {
	reason    string
	object    reflect.Type
	normalize func(runtime.Object)
}

// Normalize declares differences between objects of type T that do not matter: normal changes both
// objects that differ in place, before they are compared again. For example, normal sorts a list
// whose order does not matter, sets the value that a missing field stands for, or clears a field
// that is not preserved. The output of the test includes the reason, which must not be empty.
//
// T is a pointer to a Go type in the registry's scheme or, for all versions without a Go type,
// *[unstructured.Unstructured].
func Normalize[T runtime.Object](reason string, normal func(T)) Option {
	return func(c *config) {
		if reason == "" || normal == nil {
			c.errorf("roundtrip.Normalize: it needs a reason and a function, and has %q and %v", reason, normal != nil)
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
	var errs []error
	for _, n := range c.normalizers {
		if n.object == reflect.TypeFor[*unstructured.Unstructured]() {
			continue
		}
		kinds, _, err := s.ObjectKinds(reflect.New(n.object.Elem()).Interface().(runtime.Object))
		if err != nil {
			errs = append(errs, fmt.Errorf("roundtrip.Normalize: %w", err))
		} else if !slices.ContainsFunc(kinds, converted) {
			errs = append(errs, fmt.Errorf("roundtrip.Normalize: the test does not convert %v", n.object))
		}
	}
	return errors.Join(errs...)
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
	if s.law == Total {
		for _, r := range s.cfg.refusals {
			all = append(all, "some conversions fail, see roundtrip.Refuse: "+r.reason)
		}
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
	if asIs == nil || len(s.normalizers(version)) == 0 {
		return asIs
	}
	want, errWant := s.normalized(version, want)
	got, errGot := s.normalized(version, got)
	if err := errors.Join(errWant, errGot); err != nil {
		return &failure{err: err}
	}
	return compare(want, got)
}

// normalized returns an object of a version without the differences that [Normalize] declares.
func (s *subject) normalized(version string, object []byte) ([]byte, error) {
	var obj runtime.Object = &unstructured.Unstructured{}
	var err error
	if kind := s.kind.WithVersion(version); s.registry.Scheme().Recognizes(kind) {
		obj, err = read(s.registry.Scheme(), kind, object)
	} else {
		err = json.Unmarshal(object, obj)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range s.normalizers(version) {
		n.normalize(obj)
	}
	return json.Marshal(obj)
}

// same returns how an object that has come back to the version it started from differs from what it
// was. A Go type may write more than it has read, such as a struct without omitzero, which is not
// the fault of the conversion.
func (s *subject) same(version string, object, got []byte) *failure {
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

// compare returns how got differs from want, or nil. null, [] and {} and absence all differ, and so
// do 1 and 1.0. The order of members does not count.
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

// sameValue reports whether two Go values are equal as [equality.Semantic] has it. Unless strict,
// nil equals empty.
func sameValue(a, b any, strict bool) (same bool) {
	defer func() {
		if recover() != nil { // for an unexported field, which JSON does not have either
			textA, errA := json.Marshal(a)
			textB, errB := json.Marshal(b)
			same = errA == nil && errB == nil && bytes.Equal(textA, textB)
		}
	}()
	if strict {
		return reflect.DeepEqual(a, b) || semantic.DeepEqualWithNilDifferentFromEmpty(a, b)
	}
	return reflect.DeepEqual(a, b) || semantic.DeepEqual(a, b)
}

var semantic = func() apiconversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(time.Time.Equal); err != nil {
		panic(err)
	}
	return e
}()

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
	// Compared now, because others may use the memory of the objects again.
	diff := diffTexts(dump.OneLine(want), dump.OneLine(got))
	return &failure{diff: func() string { return diff }}
}

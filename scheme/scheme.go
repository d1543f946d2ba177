package scheme

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Option adds to the scheme that New builds.
type Option func(*builder)

// New returns a scheme with the given versions and types.
//
// Each version also gets the types that clients of any API need (ListOptions,
// WatchEvent and their kin, see [metav1.AddToGroupVersion]). Within a group,
// the versions of [Version] are preferred in the order in which the API server
// lists them: v2 before v1 before v1beta1 before v1alpha1. A function of
// [Functions] that calls [runtime.Scheme.SetVersionPriority] has the last word.
//
// The error joins the mistakes of all options and of all types (see [Check]); the scheme
// is nil then.
func New(opts ...Option) (*runtime.Scheme, error) {
	b := &builder{scheme: runtime.NewScheme()}
	for _, opt := range opts {
		opt(b)
	}
	b.prioritize()
	for _, add := range b.functions {
		b.try(func() error { return add(b.scheme) })
	}
	if err := errors.Join(append(b.errs, Check(b.scheme))...); err != nil {
		return nil, err
	}
	return b.scheme, nil
}

// Version adds the Go types of one version of an API: pointers to structs, each
// kind with its list. The name of a kind is the name of its Go type.
//
// Beside what [Check] finds, these are errors: no types; a type that is not a pointer to a
// struct; a kind given twice.
func Version(gv schema.GroupVersion, objects ...runtime.Object) Option {
	return func(b *builder) {
		if gv.Version == "" {
			b.wrong(gv, "has no version")
			return
		}
		if len(objects) == 0 {
			b.wrong(gv, "has no types")
			return
		}
		b.add(gv, objects)
	}
}

// Functions adds what functions of the usual AddToScheme form register, such as
// those of k8s.io/api or of an API package that has its own. They are called in
// their order, when all versions of [Version] are there. An error or a panic of
// such a function is an error.
func Functions(add ...func(*runtime.Scheme) error) Option {
	return func(b *builder) { b.functions = append(b.functions, add...) }
}

type builder struct {
	scheme    *runtime.Scheme
	versions  []schema.GroupVersion // those of Version, less the internal ones
	functions []func(*runtime.Scheme) error
	errs      []error
}

func (b *builder) wrong(gv schema.GroupVersion, format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("scheme: %s: %s", gv, fmt.Sprintf(format, args...)))
}

// try runs f; an error or a panic becomes an error. runtime.Scheme panics where
// registrations contradict each other.
func (b *builder) try(f func() error) {
	defer func() {
		if p := recover(); p != nil {
			b.errs = append(b.errs, fmt.Errorf("scheme: %v", p))
		}
	}()
	if err := f(); err != nil {
		b.errs = append(b.errs, fmt.Errorf("scheme: %w", err))
	}
}

func (b *builder) add(gv schema.GroupVersion, objects []runtime.Object) {
	kinds := map[string]bool{}
	before := len(b.errs)
	for i, obj := range objects {
		t := reflect.TypeOf(obj)
		if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
			b.wrong(gv, "type %d, %v, is not a pointer to a struct", i+1, t)
			continue
		}
		if kinds[t.Elem().Name()] {
			b.wrong(gv, "kind %s is given twice", t.Elem().Name())
		}
		kinds[t.Elem().Name()] = true
	}
	if len(b.errs) > before {
		return
	}
	b.try(func() error {
		b.scheme.AddKnownTypes(gv, objects...)
		if gv.Version != runtime.APIVersionInternal {
			metav1.AddToGroupVersion(b.scheme, gv)
			b.versions = append(b.versions, gv)
		}
		return nil
	})
}

// prioritize orders the versions of each group as the API server does.
func (b *builder) prioritize() {
	groups := map[string][]schema.GroupVersion{}
	for _, gv := range b.versions {
		if !slices.Contains(groups[gv.Group], gv) {
			groups[gv.Group] = append(groups[gv.Group], gv)
		}
	}
	for _, versions := range groups {
		slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		b.try(func() error { return b.scheme.SetVersionPriority(versions...) })
	}
}

package scheme

import (
	"errors"
	"fmt"
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
// versions are preferred in the order in which the API server lists them: v2
// before v1 before v1beta1 before v1alpha1.
//
// The error holds every fault of every option, joined (see [errors.Join]); the
// scheme is nil then.
func New(opts ...Option) (*runtime.Scheme, error) {
	b := &builder{scheme: runtime.NewScheme()}
	for _, opt := range opts {
		opt(b)
	}
	b.prioritize()
	if err := errors.Join(b.faults...); err != nil {
		return nil, err
	}
	return b.scheme, nil
}

// Version adds the Go types of one version of an API: pointers to structs, each
// kind with its list. The name of a kind is the name of its Go type.
//
// These are faults: no types at all; a type that is not a pointer to a struct;
// a kind given twice; a kind with metadata but without its list, or a list of
// another kind; a struct field, at any depth, that has no name in its JSON tag,
// because it would be stored under its Go name; two fields of one JSON name,
// because neither would be stored. Tags are not asked of an internal version
// ([runtime.APIVersionInternal]), which is never encoded.
func Version(gv schema.GroupVersion, objects ...runtime.Object) Option {
	return func(b *builder) {
		if gv.Version == "" {
			b.fault(gv, "has no version")
			return
		}
		if len(objects) == 0 {
			b.fault(gv, "has no types")
			return
		}
		b.add(gv, objects)
	}
}

// Functions adds what functions of the usual AddToScheme form register, such as
// those of k8s.io/api or of an API package that has its own. Their types are
// taken as they are; an error or a panic of such a function is a fault.
func Functions(add ...func(*runtime.Scheme) error) Option {
	return func(b *builder) {
		for _, f := range add {
			b.try(func() error { return f(b.scheme) })
		}
	}
}

type builder struct {
	scheme   *runtime.Scheme
	versions []schema.GroupVersion // those of Version, less the internal ones
	faults   []error
}

func (b *builder) fault(gv schema.GroupVersion, format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf("scheme: %s: %s", gv, fmt.Sprintf(format, args...)))
}

// try runs f; an error or a panic becomes a fault. runtime.Scheme panics where
// registrations contradict each other.
func (b *builder) try(f func() error) {
	defer func() {
		if p := recover(); p != nil {
			b.faults = append(b.faults, fmt.Errorf("scheme: %v", p))
		}
	}()
	if err := f(); err != nil {
		b.faults = append(b.faults, fmt.Errorf("scheme: %w", err))
	}
}

func (b *builder) add(gv schema.GroupVersion, objects []runtime.Object) {
	faults := check(gv, objects)
	for _, fault := range faults {
		b.fault(gv, "%s", fault)
	}
	if len(faults) > 0 {
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

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

// Option adds to the scheme that [New] builds or [Install] extends.
type Option func(*builder)

// New returns a scheme with the given versions and types.
//
// Each version also gets the types that clients of every API need, such as ListOptions and
// WatchEvent (see [metav1.AddToGroupVersion]). Within a group, the versions of [Version]
// have the priorities of the API server: v2 before v1, v1beta1 and v1alpha1.
//
// If an option or a type has a mistake (see [Check]), the scheme is nil, and the error joins all
// mistakes.
func New(opts ...Option) (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := Install(s, opts...); err != nil {
		return nil, err
	}
	return s, nil
}

// Install adds types to an existing scheme, such as the scheme of client-go, as [New] adds them to
// a new one. It returns the errors of New, and checks the whole scheme with [Check]. After an
// error, the scheme may have some of the types.
func Install(s *runtime.Scheme, opts ...Option) error {
	b := &builder{scheme: s}
	for _, opt := range opts {
		opt(b)
	}
	b.prioritize()
	for _, add := range b.functions {
		b.try(func() error { return add(b.scheme) })
	}
	return errors.Join(append(b.errs, Check(b.scheme))...)
}

// Version adds the Go types of one version of an API, as pointers to structs, including the list of
// each kind. A kind has the name of its Go type. New returns an error if a type is not a pointer to
// a struct, if gv has no version, or if a kind already has another type.
func Version(gv schema.GroupVersion, objects ...runtime.Object) Option {
	return func(b *builder) {
		b.try(func() error {
			b.scheme.AddKnownTypes(gv, objects...)
			if gv.Version != runtime.APIVersionInternal {
				metav1.AddToGroupVersion(b.scheme, gv)
				b.versions = append(b.versions, gv)
			}
			return nil
		})
	}
}

// Functions adds the types that functions in the form of AddToScheme register, such as the
// functions of k8s.io/api or of another API package. New calls them in their order, after it has
// added the types of all Version options, and returns an error if one of them returns an error or
// panics.
func Functions(add ...func(*runtime.Scheme) error) Option {
	return func(b *builder) { b.functions = append(b.functions, add...) }
}

// APIServer adds the types of the core group that k8s.io/apiserver encodes and decodes for every
// group: Status, the options of requests, and the types of discovery.
func APIServer() Option {
	return Functions(func(s *runtime.Scheme) error {
		core := schema.GroupVersion{Version: "v1"}
		metav1.AddToGroupVersion(s, core)
		s.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
		return nil
	})
}

type builder struct {
	scheme    *runtime.Scheme
	versions  []schema.GroupVersion // those of Version, less the internal ones
	functions []func(*runtime.Scheme) error
	errs      []error
}

// try runs f, and stores its error or panic as an error. runtime.Scheme panics if
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

// prioritize orders the versions of each group like the API server.
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

package offline

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Resource is a custom resource without a server: its objects, in all versions, and its
// webhooks. Its methods are safe for concurrent use. A webhook may use them while it
// answers.
type Resource struct {
	definition           *schema.Definition
	schemas              pipeline.Schemas
	crd                  *apiextensionsv1.CustomResourceDefinition
	storage              string     // the storage version
	converter            *converter // nil if no webhook converts
	mutating, validating []*hook
	equivalents          runtime.EquivalentResourceMapper
	namespaces           map[string]map[string]string // their labels
	user                 authenticationv1.UserInfo
	now                  func() time.Time
	uid                  func() types.UID

	mu      sync.Mutex
	objects map[types.NamespacedName]record
	version uint64 // the resource version of the latest write
	names   uint64 // how many names were generated
	reviews uint64 // how many reviews were sent
}

// New returns a resource. It has the objects of [Stored], or none. The error has all
// mistakes in the options. Among them is what a server would refuse of a webhook's
// registration, in the server's words
// (kubernetes/pkg/apis/admissionregistration/validation/validation.go): names, policies,
// timeouts, rules, selectors, addresses, and match conditions, which must compile. Not
// checked are certificates, and resources of a rule that contain each other.
func New(definition *schema.Definition, opts ...Option) (*Resource, error) {
	if definition == nil {
		return nil, errors.New("offline: the definition is nil")
	}
	s := &settings{
		user: authenticationv1.UserInfo{Username: "kubernetes-admin", Groups: []string{"system:authenticated"}},
		now:  counted(func(n uint64) time.Time { return time.Date(2000, 1, 1, 0, 0, int(n-1), 0, time.UTC) }),
		uid:  counted(func(n uint64) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n)) }),
	}
	for _, opt := range opts {
		opt(s)
	}
	r := &Resource{
		definition: definition,
		crd:        definition.CustomResourceDefinition(),
		storage:    definition.StorageVersion(),
		namespaces: s.namespaces,
		user:       s.user,
		now:        s.now,
		uid:        s.uid,
		objects:    map[types.NamespacedName]record{},
	}
	r.schemas = pipeline.NewSchemas(r.crd, func(version string) *structuralschema.Structural { return definition.Version(version).Structural() })
	r.equivalents = r.newEquivalents()
	var errs []error
	conditions := &conditionCompiler{}
	for _, g := range s.registrations {
		hooks, err := g.hooks(r.crd, conditions)
		errs = append(errs, err)
		if g.mutating {
			r.mutating = append(r.mutating, hooks...)
		} else {
			r.validating = append(r.validating, hooks...)
		}
	}
	var err error
	r.converter, err = newConverter(r.crd, s.converter)
	errs = append(errs, err)
	for i, text := range s.stored {
		if err := r.load(text); err != nil {
			errs = append(errs, fmt.Errorf("stored object %d: %w", i+1, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("offline: %s: %w", r.crd.Name, err)
	}
	return r, nil
}

// newEquivalents returns a registry in which all versions are the same resource.
func (r *Resource) newEquivalents() runtime.EquivalentResourceMapper {
	equivalents := runtime.NewEquivalentResourceRegistry()
	for _, v := range r.crd.Spec.Versions {
		equivalents.RegisterKindFor(r.gvr(v.Name), "", r.gvk(v.Name))
		if v.Subresources != nil && v.Subresources.Status != nil {
			equivalents.RegisterKindFor(r.gvr(v.Name), "status", r.gvk(v.Name))
		}
	}
	return equivalents
}

// counted returns a function that counts its calls from 1.
func counted[T any](f func(n uint64) T) func() T {
	var mu sync.Mutex
	var n uint64
	return func() T {
		mu.Lock()
		defer mu.Unlock()
		n++
		return f(n)
	}
}

func (r *Resource) gvr(version string) runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: r.crd.Spec.Group, Version: version, Resource: r.crd.Spec.Names.Plural}
}

func (r *Resource) gvk(version string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: r.crd.Spec.Group, Version: version, Kind: r.crd.Spec.Names.Kind}
}

func (r *Resource) groupResource() runtimeschema.GroupResource { return r.gvr("").GroupResource() }

func (r *Resource) namespaced() bool { return r.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// spec is that of a version which is there.
func (r *Resource) spec(version string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range r.crd.Spec.Versions {
		if v := &r.crd.Spec.Versions[i]; v.Name == version {
			return v
		}
	}
	return nil
}

// reviewUID is the UID of the next review.
func (r *Resource) reviewUID() types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews++
	return types.UID(fmt.Sprintf("00000000-0000-4000-9000-%012x", r.reviews))
}

func formatVersion(n uint64) string { return strconv.FormatUint(n, 10) }

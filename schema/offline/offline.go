package offline

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Resource is a resource of an API server that is not there: its objects, in all versions,
// and the webhooks that are asked about them. Its methods are safe for concurrent use, also
// from a webhook during a request.
type Resource struct {
	definition           *schema.Definition
	schemas              pipeline.Schemas
	crd                  *apiextensionsv1.CustomResourceDefinition
	storage              string
	converter            *converter // nil if no webhook converts
	mutating, validating []*hook
	equivalents          runtime.EquivalentResourceMapper
	user                 authenticationv1.UserInfo
	now                  func() time.Time
	uid                  func() types.UID

	mu      sync.Mutex
	objects map[types.NamespacedName]record
	version uint64 // the resource version of the latest write
	names   uint64 // how many names were generated
	reviews uint64 // how many reviews were sent
}

// record is an object in storage.
type record struct {
	text    []byte // in the storage version, without a resource version
	version uint64
}

// Option adds a webhook to a Resource, or changes how it works.
type Option func(*builder)

// builder collects what the options say.
type builder struct {
	*Resource
	convert http.Handler
	hooks   []func() (*hook, error)
}

// Convert says who converts the objects. The handler gets a ConversionReview at the path of
// the definition's clientConfig, if it has one, so that it can be the mux that an operator
// serves. A definition that says nothing of conversion, as controller-gen writes it, is
// taken to name this webhook, with reviews of v1.
//
// Without this option, New refuses a definition whose conversion is a webhook.
func Convert(h http.Handler) Option {
	return func(b *builder) { b.convert = h }
}

// Mutate adds mutating webhooks, which are called in their order. The handler gets an
// AdmissionReview at the path of the webhook's clientConfig: so it can be one handler, or
// the mux that serves all webhooks of the registration.
//
//	offline.Mutate(mux, configuration.Webhooks...)
//
// A webhook works as its fields say. What they leave out is as in the API, with three
// additions: without rules, it is called when an object of the resource is created or
// updated, in any version; without admissionReviewVersions, it gets v1; and without
// sideEffects, it has none. Without webhooks, the handler is one of which nothing is said.
func Mutate(h http.Handler, webhooks ...admissionregistrationv1.MutatingWebhook) Option {
	return func(b *builder) {
		if len(webhooks) == 0 {
			webhooks = []admissionregistrationv1.MutatingWebhook{{Name: "mutate." + b.crd.Name}}
		}
		for _, w := range webhooks {
			b.hooks = append(b.hooks, func() (*hook, error) { return b.newHook(h, *w.DeepCopy(), true) })
		}
	}
}

// Validate adds validating webhooks: see [Mutate]. All of them are called, one after the
// other, and the first error counts; a server calls them at the same time.
func Validate(h http.Handler, webhooks ...admissionregistrationv1.ValidatingWebhook) Option {
	return func(b *builder) {
		if len(webhooks) == 0 {
			webhooks = []admissionregistrationv1.ValidatingWebhook{{Name: "validate." + b.crd.Name}}
		}
		for _, w := range webhooks {
			w := w.DeepCopy()
			b.hooks = append(b.hooks, func() (*hook, error) {
				return b.newHook(h, admissionregistrationv1.MutatingWebhook{
					Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
					NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
					TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
				}, false)
			})
		}
	}
}

// User is who the reviews say that the requests come from. Without this option it is
// kubernetes-admin, of the group system:authenticated.
func User(info authenticationv1.UserInfo) Option {
	return func(b *builder) { b.user = info }
}

// Clock tells the time of creations and deletions. Without this option it is 2000-01-01, and
// a second later each time.
func Clock(now func() time.Time) Option {
	return func(b *builder) { b.now = now }
}

// UIDs gives new objects their UIDs. Without this option, they are counted:
// 00000000-0000-4000-8000-000000000001 is the first.
func UIDs(next func() types.UID) Option {
	return func(b *builder) { b.uid = next }
}

// New returns a resource without objects. The error says, in one, which options do not fit.
func New(definition *schema.Definition, opts ...Option) (*Resource, error) {
	if definition == nil {
		return nil, errors.New("offline: the definition is nil")
	}
	r := &Resource{
		definition: definition,
		crd:        definition.CustomResourceDefinition(),
		storage:    definition.StorageVersion(),
		user:       authenticationv1.UserInfo{Username: "kubernetes-admin", Groups: []string{"system:authenticated"}},
		now:        counted(func(n uint64) time.Time { return time.Date(2000, 1, 1, 0, 0, int(n-1), 0, time.UTC) }),
		uid:        counted(func(n uint64) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", n)) }),
		objects:    map[types.NamespacedName]record{},
	}
	r.schemas = pipeline.Schemas{Kind: definition.GroupKind(), PreserveUnknownFields: r.crd.Spec.PreserveUnknownFields, ByVersion: map[string]*structuralschema.Structural{}}
	for _, v := range definition.Versions() {
		r.schemas.ByVersion[v] = definition.Version(v).Structural()
	}
	b := &builder{Resource: r}
	for _, opt := range opts {
		opt(b)
	}
	equivalents := runtime.NewEquivalentResourceRegistry()
	for _, v := range r.crd.Spec.Versions {
		equivalents.RegisterKindFor(r.gvr(v.Name), "", r.gvk(v.Name))
		if v.Subresources != nil && v.Subresources.Status != nil {
			equivalents.RegisterKindFor(r.gvr(v.Name), "status", r.gvk(v.Name))
		}
	}
	r.equivalents = equivalents
	var errs []error
	for _, f := range b.hooks {
		h, err := f()
		switch {
		case err != nil:
			errs = append(errs, err)
		case h.mutating:
			r.mutating = append(r.mutating, h)
		default:
			r.validating = append(r.validating, h)
		}
	}
	var err error
	if r.converter, err = b.newConverter(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("offline: %s: %w", r.crd.Name, err)
	}
	return r, nil
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

func (r *Resource) namespaced() bool { return r.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// reviewUID is the UID of the next review.
func (r *Resource) reviewUID() types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reviews++
	return types.UID(fmt.Sprintf("00000000-0000-4000-9000-%012x", r.reviews))
}

func formatVersion(n uint64) string { return strconv.FormatUint(n, 10) }

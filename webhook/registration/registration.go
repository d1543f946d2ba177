package registration

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdkit/crdkit/internal/report"
)

// Webhooks is the declaration of an operator's webhooks. It is an [http.Handler] that
// serves each handler on its path, and answers 404 on other paths. It is safe for
// concurrent use.
type Webhooks struct {
	name      string
	namespace string // the operator's own, if it is known
	converted []schema.GroupVersionResource
	handlers  map[string]http.Handler
	endpoint  *endpoint
	objects   []*object                      // in the order of the manifests
	states    atomic.Pointer[[]*objectState] // while Inject runs
}

var _ http.Handler = (*Webhooks)(nil)

// Option adds to a declaration: see [New].
type Option func(*settings)

type settings struct {
	name           string
	endpoint       endpoint
	ownNamespace   string
	reviewVersions []string
	wrap           []func(string, http.Handler) http.Handler
	definitions    []*definition
	conversions    []*conversionWebhook
	unconverted    []string // definitions that NoConversion names
	hooks          []*hook
	guard          *guard // or nil
	networkPolicy  *networkingv1.NetworkPolicySpec
	handlers       map[string]http.Handler // by their paths
	errs           []error
}

func (s *settings) errorf(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("registration: "+format, args...))
}

// ReviewVersions sets the versions of the reviews that the API server may send, of which it uses
// the first that it supports. The default is v1, v1beta1.
func ReviewVersions(versions ...string) Option {
	return func(s *settings) { s.reviewVersions = slices.Clone(versions) }
}

// Wrap adds middleware around each handler. The function gets the path and the handler, and returns
// the handler to serve. Of several Wrap options, the first one is the outermost.
//
// Do not wrap a handler before you pass it to another option, because [New] then cannot
// generate the rules from it.
func Wrap(wrap func(path string, h http.Handler) http.Handler) Option {
	return func(s *settings) { s.wrap = append(s.wrap, wrap) }
}

// New returns the declaration that results from the options. The name, such as that of the
// operator, must be unique in the cluster, because it is the name of the webhook configurations,
// and the field manager of [Webhooks.Inject]. [Service] or [URL] is required, and at least one
// [Conversion], [Mutating] or [Validating].
//
// New returns an error that joins all mistakes of the declaration, such as values that the API
// server would reject, and functions that it would never call, or whose answers it would reject.
func New(name string, opts ...Option) (*Webhooks, error) {
	s := &settings{name: name, reviewVersions: []string{"v1", "v1beta1"}, handlers: map[string]http.Handler{}}
	// ValidateFieldManager of apimachinery's meta/v1/validation allows 128 characters.
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || len(name) > 128 {
		s.errorf("name %q, expected the name of an object with at most 128 characters: %s", name, strings.Join(errs, "; "))
	}
	for _, opt := range opts {
		opt(s)
	}
	s.endpoint.check(s)
	if s.ownNamespace == "" {
		s.ownNamespace = s.endpoint.namespace
	}
	if len(s.conversions)+len(s.hooks) == 0 {
		s.errorf("nothing to register, expected Conversion, Mutating or Validating")
	}
	if errs := validation.IsDNS1123Label(s.ownNamespace); len(errs) > 0 && (s.guard != nil || s.networkPolicy != nil) {
		s.errorf("namespace %q of the operator, expected a name, which Guard and NetworkPolicy need: set OwnNamespace", s.ownNamespace)
	}
	w := &Webhooks{name: name, namespace: s.ownNamespace, endpoint: &s.endpoint, handlers: s.handlers}
	for _, c := range s.conversions {
		s.serve(c, c.path, c.handler)
	}
	for _, h := range s.hooks {
		s.serve(h, h.path, h.handler)
	}
	s.assignConversions()
	for _, d := range s.definitions {
		w.objects = append(w.objects, s.definitionObject(d))
		if d.convertedBy == nil {
			continue
		}
		for _, version := range d.served() {
			gv := schema.GroupVersion{Group: d.Spec.Group, Version: version}
			w.converted = append(w.converted, gv.WithResource(d.Spec.Names.Plural))
		}
	}
	w.objects = append(w.objects,
		s.configurationObject(mutating, "mutatingwebhookconfigurations"),
		s.configurationObject(validating, "validatingwebhookconfigurations"))
	w.objects = slices.Concat(w.objects, s.networkPolicyObjects(), s.guardObjects())
	if err := errors.Join(s.errs...); err != nil {
		return nil, err
	}
	for _, o := range w.objects {
		ref := corev1.ObjectReference{APIVersion: o.resource.GroupVersion().String(), Kind: o.kind, Name: o.name}
		o.changes = report.New(ref, name, bundleInjected, bundleOverwritten)
	}
	return w, nil
}

// serve adds a handler on a path.
func (s *settings) serve(what fmt.Stringer, path string, h http.Handler) {
	if !strings.HasPrefix(path, "/") {
		s.errorf("%s: path %q, expected one that begins with /", what, path)
	}
	if s.handlers[path] != nil {
		s.errorf("%s: path %q is given twice", what, path)
	}
	for _, wrap := range slices.Backward(s.wrap) {
		h = wrap(path, h)
	}
	s.handlers[path] = h
}

// ServeHTTP serves the handler of the request's path. It answers 404 if no handler has the path.
func (w *Webhooks) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h := w.handlers[r.URL.Path]
	if h == nil {
		http.NotFound(rw, r)
		return
	}
	h.ServeHTTP(rw, r)
}

// Paths returns the sorted paths on which the handlers are served.
func (w *Webhooks) Paths() []string { return slices.Sorted(maps.Keys(w.handlers)) }

// Name returns the name that was passed to [New].
func (w *Webhooks) Name() string { return w.name }

// Namespace returns the operator's own namespace: the namespace of [OwnNamespace], or
// otherwise of the [Service]. It is empty if neither option is set.
func (w *Webhooks) Namespace() string { return w.namespace }

// Converted returns the resources that the conversion webhooks convert, in each served
// version.
func (w *Webhooks) Converted() []schema.GroupVersionResource { return slices.Clone(w.converted) }

// Hosts returns the host names or IP addresses that the serving certificate must have,
// because the API server verifies them. For a [Service], it is <service>.<namespace>.svc
// (apiserver/pkg/util/webhook/client.go). For a [URL], it is the host of the URL.
func (w *Webhooks) Hosts() []string { return []string{w.endpoint.host()} }

package registration

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Webhooks is a declaration: the handlers, and what the API server is told about them. As
// an [http.Handler] it serves each handler on its path, and 404 on others. It is safe for
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

// Option is a part of a declaration.
type Option func(*settings)

type settings struct {
	name           string
	endpoint       endpoint
	ownNamespace   string
	reviewVersions []string
	annotations    map[string]string
	wrap           []func(string, http.Handler) http.Handler
	definitions    []*definition
	conversions    []*conversionWebhook
	unconverted    []string // definitions that NoConversion names
	hooks          []*hook
	handlers       map[string]http.Handler // by their paths
	errs           []error
}

func (s *settings) errorf(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("registration: "+format, args...))
}

// ReviewVersions says in which versions the API server may send reviews, the preferred one
// first: v1, v1beta1, or both, which is the default. The API server takes the first that
// it knows.
func ReviewVersions(versions ...string) Option {
	return func(s *settings) { s.reviewVersions = slices.Clone(versions) }
}

// Annotations sets annotations in the manifests of the webhook configurations, and of the
// definitions that are converted: such as cert-manager.io/inject-ca-from, where cert-manager
// writes the CA bundles.
func Annotations(annotations map[string]string) Option {
	return func(s *settings) {
		if s.annotations == nil {
			s.annotations = map[string]string{}
		}
		maps.Copy(s.annotations, annotations)
	}
}

// Wrap puts middleware around each handler: wrap is called with its path, and returns what
// is served there. The rules are made from the handler itself, which is not found behind middleware
// that is put around it otherwise. The wrapper that is given first is the outermost.
func Wrap(wrap func(path string, h http.Handler) http.Handler) Option {
	return func(s *settings) { s.wrap = append(s.wrap, wrap) }
}

// New returns the declaration that the options make. The name is that of the webhook
// configurations, and of the field manager of the CA bundles: it must be unique in the cluster,
// such as the operator's. [Service] or [URL] is required, and something to register.
//
// The error joins all mistakes of the declaration: what the API server would refuse,
// and what would never be called, or called in vain.
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
	if err := errors.Join(s.errs...); err != nil {
		return nil, err
	}
	return w, nil
}

// serve adds a handler to those by their paths.
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

// ServeHTTP serves the handlers on their paths.
func (w *Webhooks) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h := w.handlers[r.URL.Path]
	if h == nil {
		http.NotFound(rw, r)
		return
	}
	h.ServeHTTP(rw, r)
}

// Paths returns the paths at which the handlers are served, sorted.
func (w *Webhooks) Paths() []string { return slices.Sorted(maps.Keys(w.handlers)) }

// Name returns the name of the declaration.
func (w *Webhooks) Name() string { return w.name }

// Namespace returns the operator's own namespace: that of [OwnNamespace], or else of the
// [Service]. It is empty if neither is given.
func (w *Webhooks) Namespace() string { return w.namespace }

// Converted returns the resources that the conversion webhook converts, in each version
// that is served.
func (w *Webhooks) Converted() []schema.GroupVersionResource { return slices.Clone(w.converted) }

// Hosts returns the names or IP addresses that the serving certificate must have, because
// the API server verifies them: the name of the [Service] as in
// apiserver/pkg/util/webhook/client.go, or the host of the [URL].
func (w *Webhooks) Hosts() []string { return []string{w.endpoint.host()} }

package registration

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Webhooks is a declaration: the handlers, and what the API server is told about them. As
// an [http.Handler] it serves each handler on its path, and 404 on others. It is safe for
// concurrent use.
type Webhooks struct {
	name        string
	namespace   string // the operator's own, if it is known
	hosts       []string
	converted   []schema.GroupVersionResource
	handlers    map[string]http.Handler
	definitions []*definition
	objects     []*object // what is registered: definitions first

	mu    sync.Mutex
	lives []*live // what the cluster has of the objects, while Reconcile runs
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
	conversions    []*conversion
	unconverted    []string // definitions that NoConversion names
	hooks          []*hook
	faults         []error
}

func (s *settings) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Errorf("registration: "+format, args...))
}

// ReviewVersions says in which versions the API server may send reviews, the preferred one
// first: v1, v1beta1, or both, which is the default. The API server takes the first that
// it knows.
func ReviewVersions(versions ...string) Option {
	return func(s *settings) {
		for i, v := range versions {
			if v != "v1" && v != "v1beta1" || slices.Contains(versions[:i], v) {
				s.fault("ReviewVersions %q: say v1, v1beta1, or both", versions)
				return
			}
		}
		if len(versions) == 0 {
			s.fault("ReviewVersions has no version: say v1, v1beta1, or both")
		}
		s.reviewVersions = slices.Clone(versions)
	}
}

// Annotations sets annotations on all objects that are registered, in the manifests and by
// [Webhooks.Reconcile]: such as cert-manager.io/inject-ca-from, for who reconciles without
// a [Bundle]. These are the webhook configurations, and the definitions that are converted.
func Annotations(annotations map[string]string) Option {
	return func(s *settings) {
		for key, value := range annotations {
			if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 || key == DeclaredAnnotation {
				s.fault("annotation %q: not a key that may be set: %s", key, strings.Join(errs, "; "))
				continue
			}
			if s.annotations == nil {
				s.annotations = map[string]string{}
			}
			s.annotations[key] = value
		}
	}
}

// Wrap puts middleware around each handler: wrap is called with its path, and returns what
// is served there. So the rules are still made from the handler. The wrapper that is given
// first is the outermost.
func Wrap(wrap func(path string, h http.Handler) http.Handler) Option {
	return func(s *settings) {
		if wrap == nil {
			s.fault("the function of Wrap is nil")
			return
		}
		s.wrap = append(s.wrap, wrap)
	}
}

// New returns the declaration that the options make. The name is that of the webhook
// configurations and of the field manager, which owns what is registered: it must be unique
// in the cluster, such as the operator's, and nobody else may apply anything under it.
// [Service] or [URL] is required, and something to register.
//
// The error has all faults of the declaration, joined: what the API server would refuse,
// and what would never be called, or called in vain.
func New(name string, opts ...Option) (*Webhooks, error) {
	s := &settings{name: name, reviewVersions: []string{"v1", "v1beta1"}}
	// ValidateFieldManager of apimachinery's meta/v1/validation allows 128 characters.
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || len(name) > 128 {
		s.fault("name %q: it must be the name of an object, with at most 128 characters: %s", name, strings.Join(errs, "; "))
	}
	for _, opt := range opts {
		if opt == nil {
			s.fault("an option is nil")
			continue
		}
		opt(s)
	}
	s.endpoint.check(s)
	if s.ownNamespace == "" {
		s.ownNamespace = s.endpoint.namespace
	}
	if len(s.conversions)+len(s.hooks) == 0 {
		s.fault("there is nothing to register: give Conversion, Mutating or Validating")
	}
	w := &Webhooks{name: name, namespace: s.ownNamespace, definitions: s.definitions, handlers: s.serve()}
	s.checkDefinitions()
	converted := s.converted()
	for _, d := range converted {
		for _, v := range d.Spec.Versions {
			if v.Served {
				w.converted = append(w.converted, schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural})
			}
		}
		w.objects = append(w.objects, s.definitionObject(d))
	}
	for _, d := range s.definitions {
		// Of a single version nothing is converted: what an older release has left there is
		// of no use and no harm.
		if len(d.Spec.Versions) > 1 && !slices.ContainsFunc(converted, func(c convertedDefinition) bool { return c.definition == d }) {
			w.objects = append(w.objects, s.unconvertedObject(d))
		}
	}
	for _, kind := range []hookKind{mutating, validating} {
		w.objects = append(w.objects, s.configurationObject(kind))
	}
	if err := errors.Join(s.faults...); err != nil {
		return nil, err
	}
	w.hosts = []string{s.endpoint.host()}
	return w, nil
}

// serve returns the handlers by their paths.
func (s *settings) serve() map[string]http.Handler {
	handlers := map[string]http.Handler{}
	add := func(what, path string, h http.Handler) {
		if err := s.endpoint.checkPath(path); err != nil {
			s.fault("%s: %w", what, err)
		}
		if _, twice := handlers[path]; twice {
			s.fault("%s: path %q is given twice", what, path)
		}
		if h == nil {
			s.fault("%s: the handler is nil", what)
			return
		}
		for _, wrap := range slices.Backward(s.wrap) {
			if h = wrap(path, h); h == nil {
				s.fault("%s: Wrap made a nil handler", what)
				return
			}
		}
		handlers[path] = h
	}
	for _, c := range s.conversions {
		add(c.String(), c.path, c.handler)
	}
	for _, h := range s.hooks {
		add(h.String(), h.path, h.handler)
	}
	return handlers
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
func (w *Webhooks) Hosts() []string { return slices.Clone(w.hosts) }

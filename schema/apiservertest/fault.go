package apiservertest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Fault makes requests of clients fail.
type Fault struct {
	// User, Verb, Resource, Namespace and Name select requests, as the rules of roles do: Verb may be watch or
	// deletecollection, and Resource may have a subresource, such as deployments/scale. An empty field selects all.
	User, Verb, Resource, Namespace, Name string
	// Skip is how many of these requests succeed first. Then Times requests fail: all if it is negative, one if it is 0.
	Skip, Times int
	// Delay is the time until the answer. Until then, the server does nothing.
	Delay time.Duration
	// Done means that the server does what is requested, and that only its answer is replaced. It does not apply to
	// watches.
	Done bool
	// Err is the answer, such as apierrors.NewConflict. If it is nil, there is none: the connection breaks. Clients of
	// client-go try again by themselves after a GET without an answer, and after an error with retryAfterSeconds.
	Err error
}

// Injected is a fault of a server.
type Injected struct {
	faults       *faults
	fault        Fault
	seen, failed int
}

// Inject makes requests fail from now on, and ends the watches that the fault selects and that run. So a
// fault with the verb watch and the error apierrors.NewResourceExpired makes informers list again, and
// Fault{Times: -1} is a server that is away until [Injected.Remove]. If several faults select a request, the first
// that is due decides.
func (s *Server) Inject(f Fault) *Injected {
	i := &Injected{faults: &s.faults, fault: f}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.all = append(s.faults.all, i)
	for w, end := range s.faults.watches {
		if f.selects(w) {
			end()
		}
	}
	return i
}

// Failed returns how many requests have failed.
func (i *Injected) Failed() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.failed
}

// Remove makes no further request fail.
func (i *Injected) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.faults.all = slices.DeleteFunc(i.faults.all, func(other *Injected) bool { return other == i })
}

// selector is what a fault can select of a request.
type selector struct{ user, verb, resource, namespace, name string }

func (f Fault) selects(s *selector) bool {
	has := func(want, got string) bool { return want == "" || want == got }
	return has(f.User, s.user) && has(f.Verb, s.verb) && has(f.Resource, s.resource) && has(f.Namespace, s.namespace) && has(f.Name, s.name)
}

// faults are those of a server, and the watches that they may end.
type faults struct {
	mu      sync.Mutex
	all     []*Injected
	watches map[*selector]context.CancelFunc
}

var requestInfo = genericapirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// serve serves a request, unless it is to fail.
func (f *faults) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil { // which the server answers
		h.ServeHTTP(w, r)
		return
	}
	s := &selector{cmp.Or(r.Header.Get(authenticationv1.ImpersonateUserHeader), admin), info.Verb, info.Resource, info.Namespace, info.Name}
	if info.Subresource != "" {
		s.resource += "/" + info.Subresource
	}
	if s.verb == "watch" {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		f.watch(s, cancel)
		defer f.watch(s, nil)
		r = r.WithContext(ctx)
	}
	if fault, ok := f.due(s); ok {
		fault.answer(h, w, r, s)
		return
	}
	h.ServeHTTP(w, r)
}

// watch remembers how to end a watch while it runs.
func (f *faults) watch(s *selector, end context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if end == nil {
		delete(f.watches, s)
		return
	}
	f.watches[s] = end
}

// due counts a request, and returns the fault that it meets.
func (f *faults) due(s *selector) (fault Fault, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.all {
		if !i.fault.selects(s) {
			continue
		}
		i.seen++
		if !ok && i.seen > i.fault.Skip && (i.fault.Times < 0 || i.failed < max(1, i.fault.Times)) {
			i.failed++
			fault, ok = i.fault, true
		}
	}
	return fault, ok
}

// answer answers a request that meets the fault.
func (f Fault) answer(h http.Handler, w http.ResponseWriter, r *http.Request, s *selector) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		}
	}
	if f.Done && s.verb != "watch" {
		h.ServeHTTP(&responseWriter{ctx: r.Context(), head: true, header: http.Header{}, started: make(chan struct{})}, r)
	}
	if f.Err == nil || r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // as net/http wants it
	}
	responsewriters.ErrorNegotiated(f.Err, extensions.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// admin is the user of requests that impersonate nobody.
const admin = "system:admin"

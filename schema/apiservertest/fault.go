package apiservertest

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
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
	// watches. Otherwise, [Server.Access] does not know of the request.
	Done bool
	// Err is the answer, such as apierrors.NewConflict. If it is nil, the client gets no answer, because the connection
	// breaks. Clients of client-go try again by themselves after a GET without an answer, and after an error with
	// retryAfterSeconds.
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

// userRequest is what a user asks for.
type userRequest struct{ user, verb, resource, namespace, name string }

func (f Fault) selects(r *userRequest) bool {
	has := func(want, got string) bool { return want == "" || want == got }
	return has(f.User, r.user) && has(f.Verb, r.verb) && has(f.Resource, r.resource) && has(f.Namespace, r.namespace) && has(f.Name, r.name)
}

// faults are those of a server, and the watches that they may end.
type faults struct {
	mu      sync.Mutex
	all     []*Injected
	watches map[*userRequest]context.CancelFunc
}

var requestInfo = genericapirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// serve serves a request, unless it is to fail.
func (f *faults) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil { // which the server answers
		h.ServeHTTP(w, r)
		return
	}
	asks := &userRequest{cmp.Or(r.Header.Get(authenticationv1.ImpersonateUserHeader), admin), info.Verb, info.Resource, info.Namespace, info.Name}
	if info.Subresource != "" {
		asks.resource += "/" + info.Subresource
	}
	if asks.verb == "watch" {
		ctx, cancel := context.WithCancel(r.Context())
		f.mu.Lock()
		f.watches[asks] = cancel
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.watches, asks)
			cancel()
		}()
		r = r.WithContext(ctx)
	}
	if fault, ok := f.due(asks); ok {
		fault.answer(h, w, r, asks)
		return
	}
	h.ServeHTTP(w, r)
}

// due counts a request, and returns the fault that it meets.
func (f *faults) due(r *userRequest) (fault Fault, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.all {
		if !i.fault.selects(r) {
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
func (f Fault) answer(h http.Handler, w http.ResponseWriter, r *http.Request, asks *userRequest) {
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		}
	}
	if f.Done && asks.verb != "watch" {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if f.Err == nil || r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // as net/http wants it
	}
	responsewriters.ErrorNegotiated(f.Err, extensions.Codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// admin is the user of requests that impersonate nobody.
const admin = "system:admin"

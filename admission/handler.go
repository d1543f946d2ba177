package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/handlerinfo"
	"github.com/crdkit/crdkit/internal/listkeys"
	"github.com/crdkit/crdkit/internal/review"
)

// Option adds a function to a handler, or changes how it works.
type Option func(*handler)

// MaxRequestBytes limits the body of a request; a larger one is refused with
// 413 before it is read whole. The default is 16 MiB: an object of the 3 MiB
// that the API server takes, twice, with room to spare. It is a fault if n is 0 or less.
func MaxRequestBytes(n int64) Option {
	return func(h *handler) {
		if n <= 0 {
			h.faults = append(h.faults, fmt.Errorf("admission: MaxRequestBytes is %d, and must be more than 0", n))
		}
		h.maxBytes = n
	}
}

type handler struct {
	scheme           *runtime.Scheme
	maxBytes         int64
	converter        Converter
	firstDenialStops bool
	observers        []func(Observation)
	mutators         []*function
	validators       []*function
	functions        []*function // all of them
	codecs           *codec.Codecs
	forms            map[reflect.Type]form
	kindTexts        map[string]schema.GroupVersionKind // of the functions
	listKeys         listKeys
	memories         sync.Pool // of calls
	faults           []error
}

// NewHandler returns an admission webhook that calls the functions of the
// options. It answers AdmissionReviews of admission.k8s.io/v1 and v1beta1, each
// in the version in which it was asked, on any path. The scheme tells which Go
// type belongs to which kind; see package scheme.
//
// On CREATE and UPDATE, the functions of [Mutate] are called in their order,
// each with the result of the one before, until one returns an error. Then all
// validating functions for the operation are called with the result, and their
// errors are joined. A validating webhook must not have functions of Mutate:
// the API server refuses a patch from it.
//
// A function is called for the objects of its own kind and version; see
// [ConvertWith] for all versions, and [Filter] for what narrows this down. It is not
// called for a subresource such as status, whose object may be of another kind, but for
// the one that it is meant for: see [Subresource]. A request for a subresource or an
// operation for which no function is there passes. One for a kind and version for which
// no function is there is an error: then the webhook's rules and the handler do not
// fit together: package webhook/registration makes the rules from the handler.
//
// Functions see an object without metadata.managedFields, which stay as they are.
//
// What is no review that can be answered gets an HTTP error with a Status: 400,
// 405 (not a POST), 413 (see [MaxRequestBytes]) or 415 (not JSON).
//
// NewHandler panics, with all faults in one error, if there are no functions, the scheme
// does not know the type of one, or that is a list: these are mistakes of the program,
// to be found when it starts.
func NewHandler(s *runtime.Scheme, opts ...Option) http.Handler {
	h := &handler{
		scheme:    s,
		maxBytes:  16 << 20,
		codecs:    codec.New(),
		forms:     map[reflect.Type]form{},
		kindTexts: map[string]schema.GroupVersionKind{},
	}
	if s == nil {
		h.faults = append(h.faults, errors.New("admission: the scheme is nil"))
		h.scheme = runtime.NewScheme()
	}
	for _, opt := range opts {
		if opt == nil {
			h.faults = append(h.faults, errors.New("admission: an option is nil"))
			continue
		}
		opt(h)
	}
	h.functions = slices.Concat(h.mutators, h.validators)
	if len(h.functions)+len(h.faults) == 0 {
		h.faults = append(h.faults, errors.New("admission: the handler has no functions"))
	}
	h.checkListKeys()
	if err := errors.Join(h.faults...); err != nil {
		panic(err)
	}
	for _, f := range h.functions {
		h.kindTexts[kindText(f.kind)] = f.kind
	}
	return handlerinfo.With(h.observed(review.Protocol{
		Group:  "admission.k8s.io",
		Kind:   "AdmissionReview",
		New:    func() review.Members { return &members{} },
		Answer: h.answer,
		Failed: noteFailure,
	}.Handler(h.maxBytes)), h.served())
}

// form returns the form of a type, the same for the same type.
func (h *handler) form(t reflect.Type) form {
	if h.forms[t] == nil {
		f := newForm(h.codecs, t)
		if f, ok := f.(*typed); ok {
			f.listKeys = listkeys.OfType(f.goType)
		}
		h.forms[t] = f
	}
	return h.forms[t]
}

// answer decides about one AdmissionRequest.
func (h *handler) answer(ctx context.Context, req *review.Request, b []byte) ([]byte, error) {
	m, _ := h.memories.Get().(*memory)
	if m == nil {
		m = &memory{}
	}
	c := &call{handler: h, memory: m}
	if err := c.read(req); err != nil {
		return nil, err
	}
	c.note(ctx)
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("kind", c.kind.Kind, "object", klog.KRef(c.namespace, c.objectName()),
		"operation", c.operation, "user", c.user, "uid", req.UID))
	ctx, end := c.enter(ctx, c.kind) // for the converter
	defer end()
	var status *metav1.Status
	if err := c.decide(ctx); err != nil {
		if status = c.denial(ctx, err); status == nil {
			return nil, c.undecided(err)
		}
		c.patches = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	patch := c.patch()
	noteDecision(ctx, status, patch)
	b, err := c.respond(b, req.UID, status, patch)
	const keep = 4 << 20 // one enormous object must not stay forever
	if !c.broken && len(c.object)+len(c.oldObject) <= keep {
		h.memories.Put(m)
	}
	return b, err
}

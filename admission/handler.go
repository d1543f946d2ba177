package admission

import (
	"context"
	"errors"
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

// Converter converts one object, given as JSON, to another version of its kind. It must
// not keep the object, whose memory is used again, nor change it. *conversion.Registry is
// one.
type Converter interface {
	Convert(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error)
}

// ConvertWith lets each function of the handler serve every version of its kind:
// an object of another version is converted to the version of the function. What
// a mutating function changed is converted back to the version of the request,
// and only that: fields which neither version's Go type knows stay. The paths in
// the field errors of a validating function are those of its own version.
//
// A field error of the converter denies the request, as one of a function does. Where it
// is at an annotation of the object as it is stored, such as that of conversion.Lossless,
// functions see that object without the annotation. So an update that removes it is
// decided like any other, and so is the deletion, in the version that is stored.
//
// If the converter has a method Versions(schema.GroupKind) []string, as
// *conversion.Registry has, package webhook/registration registers the functions for those
// versions, otherwise for all. It is an error if the converter is nil.
func ConvertWith(c Converter) Option {
	return func(h *handler) {
		if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			h.errs = append(h.errs, errors.New("admission: the converter of ConvertWith is nil"))
		}
		h.converter = c
	}
}

// maxRequestBytes is enough for an object of the 3 MiB that the API server takes, twice,
// in a request with other members.
const maxRequestBytes = 16 << 20

type handler struct {
	scheme          *runtime.Scheme
	converter       Converter
	observers       []func(Observation)
	mutators        []*function
	validators      []*function
	functions       []*function // all of them
	codecs          *codec.Codecs
	representations map[reflect.Type]representation
	kindTexts       map[string]schema.GroupVersionKind // of the functions
	listKeys        listKeys
	memories        sync.Pool // of calls
	errs            []error
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
// called for a subresource such as status, whose object may be of another kind, unless
// [Subresource] names it. A request for a subresource or an
// operation without a function passes. One for a kind and version without a function is
// an error, because the webhook's rules do not fit the handler then: package
// webhook/registration makes the rules from the handler.
//
// Functions see an object without metadata.managedFields, which stay as they are.
//
// A request that is not a review gets an HTTP error with a Status: 400, 405 (not a POST),
// 413 (more than 16 MiB) or 415 (not JSON).
//
// NewHandler panics, with all mistakes in one error, if there are no functions, the scheme
// does not know the type of one, that is a list, or an option says so.
func NewHandler(s *runtime.Scheme, opts ...Option) http.Handler {
	h := &handler{
		scheme:          s,
		codecs:          codec.New(),
		representations: map[reflect.Type]representation{},
		kindTexts:       map[string]schema.GroupVersionKind{},
	}
	if s == nil {
		h.errs = append(h.errs, errors.New("admission: the scheme is nil"))
		h.scheme = runtime.NewScheme()
	}
	for _, opt := range opts {
		opt(h)
	}
	h.functions = slices.Concat(h.mutators, h.validators)
	if len(h.functions)+len(h.errs) == 0 {
		h.errs = append(h.errs, errors.New("admission: the handler has no functions"))
	}
	h.prepareListKeys()
	if err := errors.Join(h.errs...); err != nil {
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
	}.Handler(maxRequestBytes)), h.served())
}

// representation returns the representation of a type, the same for the same type.
func (h *handler) representation(t reflect.Type) representation {
	if h.representations[t] == nil {
		f := newRepresentation(h.codecs, t)
		if f, ok := f.(*typed); ok {
			f.listKeys = listkeys.OfType(f.goType)
		}
		h.representations[t] = f
	}
	return h.representations[t]
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
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues(
		"kind", c.kind.Kind, "object", klog.KRef(c.namespace, c.objectName()), "operation", c.operation, "user", c.user, "uid", req.UID))
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
	// After a panic, which is never allowed, the memory may be in any state.
	if status == nil && len(c.object)+len(c.oldObject) <= keep {
		h.memories.Put(m)
	}
	return b, err
}

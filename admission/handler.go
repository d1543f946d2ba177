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
	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/review"
	"github.com/crdkit/crdkit/internal/served"
)

// Option adds a function to a handler, or changes how the handler works.
type Option func(*handler)

// Converter converts one object, given as JSON, to another version of its kind.
// *conversion.Registry is a Converter. Convert must not modify or retain the object, because the
// handler reuses the memory.
type Converter interface {
	// Convert converts the JSON of an object to a version of its kind.
	Convert(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error)
	// Versions returns the versions of a kind that Convert converts.
	Versions(kind schema.GroupKind) []string
}

// ConvertWith lets each function of the handler serve every version of its kind. An object of
// another version is converted to the version of the function, and the changes of a mutating
// function are converted back. The patch has only these changes, so all other fields are preserved,
// including fields that neither Go type has. Field errors of a validating function have paths in
// the version of the function.
//
// A field error of the converter for the new object denies the request, like a field error of a
// function. An error of the converter for the stored object (oldObject) never denies, but leaves
// the request undecided if a function needs the stored object. An annotation of the stored object
// for which the converter returns a field error, such as an invalid annotation of
// conversion.Lossless, is ignored, so users can still repair or delete the object.
//
// Package webhook/registration registers the functions for the versions that the converter returns.
// NewHandler panics if the converter is nil.
func ConvertWith(c Converter) Option {
	return func(h *handler) {
		if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			h.errs = append(h.errs, errors.New("admission: the converter of ConvertWith is nil"))
		}
		h.converter = c
	}
}

type handler struct {
	scheme     *runtime.Scheme
	converter  Converter
	observers  []func(Observation)
	mutators   []*function
	validators []*function
	functions  []*function // all of them
	codecs     *codec.Codecs
	listKeys   map[schema.GroupVersionKind]*listmapkeys.Tree // of the CRDs of ListMapKeys
	typeKeys   map[schema.GroupVersionKind]*listmapkeys.Tree // of the Go types, with ConvertWith
	bufferPool sync.Pool                                     // of calls
	errs       []error
}

// NewHandler returns an admission webhook that calls the functions of the options. It serves
// AdmissionReviews of admission.k8s.io/v1 and v1beta1 on any path, and answers in the version
// of the request. The scheme maps Go types to kinds; see package scheme.
//
// On CREATE and UPDATE, the functions added with [Mutate] are called in the order of the options,
// each with the result of the previous one, until one returns an error. If none does, all
// validating functions for the operation are called with the result, and their errors are joined. A
// validating webhook must not have functions of Mutate, because the API server rejects its patch.
//
// Only a function with the filter [Subresource] is called for a subresource such as status, because the
// subresource's object may be of another kind.
//
// A request for an operation or a subresource without a function is allowed. A request for a kind
// or version without a function is left undecided, because the webhook is registered for objects
// that the handler does not serve; package webhook/registration derives the rules from the handler.
//
// Functions see objects without metadata.managedFields, which are preserved.
//
// The response to an undecided request is an HTTP error with a Status:
//
//   - If the error is or wraps an API error with code 429 or at least 500, the response has
//     this code. It is 504 if the error wraps [context.DeadlineExceeded] or [context.Canceled],
//     and otherwise 500.
//   - The details have the UID of the request, and its review version in a cause of type
//     ReviewVersion.
//   - If an API error that the function returns has retryAfterSeconds in its details, the response
//     has the header Retry-After with this value, so that the API server retries before it applies
//     the failurePolicy (client-go/rest/with_retry.go).
//
// A request that is not a review gets an HTTP error with a Status of code 400, 405 (not a
// POST) or 415 (not JSON). A review that does not fit into the memory for reviews gets 413 or
// 503; see package webhook.
//
// NewHandler panics with an error that joins all mistakes:
//
//   - The scheme is nil, or no option adds a function.
//   - A function is nil.
//   - The scheme has no kind, or several kinds, for the Go type of a function.
//   - The Go type of a function is a list, or not a pointer to a struct.
//   - An option or a filter is invalid, as its documentation describes.
func NewHandler(s *runtime.Scheme, opts ...Option) http.Handler {
	h := &handler{
		scheme:   s,
		codecs:   codec.New(),
		listKeys: map[schema.GroupVersionKind]*listmapkeys.Tree{},
		typeKeys: map[schema.GroupVersionKind]*listmapkeys.Tree{},
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
	if err := errors.Join(h.errs...); err != nil {
		panic(err)
	}
	if h.converter != nil {
		for kind, t := range h.scheme.AllKnownTypes() {
			if slices.ContainsFunc(h.functions, func(f *function) bool { return f.kind.GroupKind() == kind.GroupKind() }) {
				h.typeKeys[kind] = listmapkeys.OfType(t)
			}
		}
	}
	return served.With(decider{h.observed(review.Protocol{
		Group:  "admission.k8s.io",
		Kind:   "AdmissionReview",
		Answer: h.answer,
		Failed: noteFailure,
	}.Handler()), h}, h.served())
}

// answer answers one AdmissionRequest, which review.Protocol has received:
//
//   - readRequest reads its members;
//   - run calls decide, and makes its error a denial, or an error that leaves the request undecided;
//   - check refuses a request that no function handles;
//   - mutate calls mutateWith for the functions of Mutate that follow each other and have objects of the
//     same version and type. It converts the object to their version (inVersion, with ConvertWith), decodes
//     it, calls the functions, converts the object before and after back, and makes a patch of the
//     difference;
//   - validate calls the other functions;
//   - response.append writes the response.
func (h *handler) answer(ctx context.Context, req *review.Request) ([]byte, error) {
	asked, err := h.readRequest(req)
	if err != nil {
		return nil, err
	}
	reused, _ := h.bufferPool.Get().(*buffers)
	if reused == nil {
		reused = &buffers{}
	}
	c := &call{handler: h, request: asked, buffers: reused}
	status, err := c.run(ctx, c.decide)
	if err != nil {
		return nil, err
	}
	b, err := c.response.append(req.Begin(), c.uid, status)
	// After a panic, which is never allowed, the buffers may be in any state.
	if status == nil && len(c.object)+len(c.oldObject) <= review.Small {
		h.bufferPool.Put(reused)
	}
	return b, err
}

// run decides about the call, in a context with its logger. The status says why the request is
// denied; an error leaves it undecided.
func (c *call) run(ctx context.Context, decide func(context.Context) error) (status *metav1.Status, err error) {
	o := c.handler.startObservation(ctx, &c.request)
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues(
		"kind", logtext.Text(c.kind.Kind), "object", klog.KRef(logtext.Text(c.namespace), logtext.Text(c.objectName())),
		"operation", logtext.Text(string(c.operation)), "user", logtext.Text(c.user), "uid", logtext.Text(string(c.uid))))
	ctx, end := c.enter(ctx, c.kind) // for Warn and RequestFrom in the converter
	defer end()
	if err := decide(ctx); err != nil {
		if status = c.denial(ctx, err); status == nil {
			return nil, c.undecided(err)
		}
		c.patches = nil
	}
	o.decided(status, len(c.patches) > 0)
	return status, nil
}

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/kinds"
	"github.com/crdkit/crdkit/internal/review"
)

// Option adds a function to a handler, or changes how it works.
type Option func(*handler)

// MaxRequestBytes limits the body of a request; a larger one is refused with
// 413 before it is read whole. The default is 16 MiB: an object of the 3 MiB
// that the API server takes, twice, with room to spare.
func MaxRequestBytes(n int64) Option {
	return func(h *handler) { h.maxBytes = n }
}

var errNoFunction = errors.New("admission: a function is nil")

type handler struct {
	scheme     *runtime.Scheme
	maxBytes   int64
	converter  Converter
	kinds      []schema.GroupVersionKind // those of all functions
	mutators   []mutator
	validators []validator
	faults     []error
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
// [ConvertWith] for all versions. A request for a subresource, such as status,
// passes without a call: its object may be of another kind. So does an operation
// for which no function is there. A request for a kind and version for which no
// function is there is an error: then the webhook's rules and the handler do not
// fit together.
//
// What is no review that can be answered gets an HTTP error with a Status: 400,
// 405 (not a POST), 413 (see [MaxRequestBytes]) or 415 (not JSON).
//
// NewHandler panics, with all faults in one error, if there are no functions or
// the scheme does not know the type of one: that is a mistake of the program,
// to be found when it starts.
func NewHandler(s *runtime.Scheme, opts ...Option) http.Handler {
	h := &handler{scheme: s, maxBytes: 16 << 20}
	for _, opt := range opts {
		opt(h)
	}
	if len(h.kinds)+len(h.faults) == 0 {
		h.faults = append(h.faults, errors.New("admission: the handler has no functions"))
	}
	if err := errors.Join(h.faults...); err != nil {
		panic(err)
	}
	return review.Protocol{
		Group:  "admission.k8s.io",
		Kind:   "AdmissionReview",
		Answer: h.answer,
	}.Handler(h.maxBytes)
}

// kindOf returns the one kind under which the scheme knows T. A fault is noted.
func kindOf[T runtime.Object](h *handler) schema.GroupVersionKind {
	kind, err := kinds.Of(h.scheme, reflect.TypeFor[T]())
	if err != nil {
		h.faults = append(h.faults, fmt.Errorf("admission: %w", err))
		return kind
	}
	h.kinds = append(h.kinds, kind)
	return kind
}

func newObject[T runtime.Object]() runtime.Object {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// answer decides about one AdmissionRequest.
func (h *handler) answer(ctx context.Context, req *review.Request, b []byte) ([]byte, error) {
	// The requests of v1 and of v1beta1 have the same fields.
	request := &admissionv1.AdmissionRequest{}
	if err := json.Unmarshal(req.Raw, request); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("request: %v", err))
	}
	c := &call{handler: h, request: request, object: request.Object.Raw, oldObject: request.OldObject.Raw}
	response, err := c.decide(withCall(ctx, c))
	if err != nil {
		return nil, c.undecided(err)
	}
	response.UID = req.UID
	response.Warnings = c.warnings
	encoded, err := json.Marshal(response)
	return append(b, encoded...), err
}

package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
	"github.com/crdkit/crdkit/internal/served"
)

// Option changes a handler.
type Option func(*handler)

// MaxRequestBytes limits the body of a request; a larger one is refused with
// 413 before it is read whole. The default is 256 MiB: the API server sends all
// objects of a list in one request. It is a fault if n is 0 or less.
func MaxRequestBytes(n int64) Option {
	return func(h *handler) {
		if n <= 0 {
			h.faults = append(h.faults, fmt.Errorf("conversion: MaxRequestBytes is %d, and must be more than 0", n))
		}
		h.maxBytes = n
	}
}

// Parallelism limits how many goroutines convert the objects of one review. The
// default is GOMAXPROCS; a short list takes one. The order of the objects is kept in
// any case.
func Parallelism(n int) Option {
	return func(h *handler) { h.parallel = max(1, n) }
}

type handler struct {
	registry *Registry
	maxBytes int64
	parallel int
	observe  func(Observation)
	faults   []error
}

// NewHandler returns the conversion webhook of the registry's kinds. It answers
// ConversionReviews of apiextensions.k8s.io/v1 and v1beta1, each in the version
// in which it was asked, on any path.
//
// All objects of a review are converted, in their order, or none: a failure is
// a response whose result says which object failed, and why; the API server
// shows that message to the user. Objects that have the desired version already
// pass through as they are. Conversion stops when the API server stops waiting.
//
// What is no review that can be answered gets an HTTP error with a Status: 400,
// 405 (not a POST), 413 (see [MaxRequestBytes]) or 415 (not JSON).
//
// NewHandler panics if [Registry.Check] or an option finds a fault, with all of them in
// one error: they are mistakes of the program, to be found when it starts.
func NewHandler(r *Registry, opts ...Option) http.Handler {
	h := &handler{registry: r, maxBytes: 256 << 20, parallel: runtime.GOMAXPROCS(0)}
	for _, opt := range opts {
		opt(h)
	}
	if err := errors.Join(append(h.faults, r.Check())...); err != nil {
		panic(err)
	}
	var kinds served.Served
	for _, k := range r.Kinds() {
		kinds.Conversions = append(kinds.Conversions, served.Kind{GroupKind: k.GroupKind, Versions: k.Versions})
	}
	return served.With(review.Protocol{
		Group:   "apiextensions.k8s.io",
		Kind:    "ConversionReview",
		List:    "objects",
		Head:    []string{"desiredAPIVersion"},
		Answer:  h.answer,
		Failure: failure,
	}.Handler(h.maxBytes), kinds)
}

// answer converts all the objects of a ConversionRequest.
func (h *handler) answer(ctx context.Context, req *review.Request, b []byte) ([]byte, error) {
	desired, err := h.desired(req)
	if err != nil {
		return nil, apierrors.NewBadRequest("request.desiredAPIVersion: " + err.Error())
	}
	b = append(b, `{"uid":`...)
	b = rawjson.AppendQuote(b, string(req.UID))
	b = append(b, `,"convertedObjects":[`...)
	var begin time.Time
	if h.observe != nil {
		begin = time.Now()
	}
	b, seen, err := h.convertList(ctx, req.List, desired, b)
	if err == nil {
		err = req.Finish()
	}
	if h.observe != nil {
		if err != nil {
			seen.Objects = nil
		}
		seen.To, seen.Err, seen.Duration = desired, err, time.Since(begin)
		h.observe(seen)
	}
	if err != nil {
		return nil, err
	}
	return append(b, `],"result":{"status":"Success"}}`...), nil
}

// desired returns the version that is asked for.
func (h *handler) desired(req *review.Request) (schema.GroupVersion, error) {
	if text := req.Head[0]; len(text) > 2 && text[0] == '"' {
		if v, ok := h.registry.versions[string(text[1:len(text)-1])]; ok {
			return v.gv, nil
		}
	}
	s, ok := rawjson.String(req.Head[0])
	if !ok || s == "" {
		return schema.GroupVersion{}, errors.New("it is missing")
	}
	return schema.ParseGroupVersion(s)
}

// failure is the response that the API server turns into an error for the user.
func failure(req *review.Request, err error) []byte {
	result := review.Status(err)
	response, err := json.Marshal(struct {
		UID              string        `json:"uid"`
		ConvertedObjects []struct{}    `json:"convertedObjects"`
		Result           metav1.Status `json:"result"`
	}{string(req.UID), []struct{}{}, result})
	if err != nil { // a Status holds nothing that cannot be encoded
		panic(err)
	}
	return response
}

package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
)

// Option changes a handler.
type Option func(*handler)

// MaxRequestBytes limits the body of a request; a larger one is refused with
// 413 before it is read whole. The default is 256 MiB: the API server sends all
// objects of a list in one request.
func MaxRequestBytes(n int64) Option {
	return func(h *handler) { h.maxBytes = n }
}

type handler struct {
	registry *Registry
	maxBytes int64
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
// NewHandler panics if [Registry.Check] finds a fault, with that error: an
// incomplete converter is a mistake of the program, to be found when it starts.
func NewHandler(r *Registry, opts ...Option) http.Handler {
	if err := r.Check(); err != nil {
		panic(err)
	}
	h := &handler{registry: r, maxBytes: 256 << 20}
	for _, opt := range opts {
		opt(h)
	}
	return review.Protocol{
		Group:   "apiextensions.k8s.io",
		Kind:    "ConversionReview",
		Answer:  h.answer,
		Failure: failure,
	}.Handler(h.maxBytes)
}

// answer converts all the objects of a ConversionRequest.
func (h *handler) answer(ctx context.Context, req review.Request) ([]byte, error) {
	desired, objects, err := parse(req.Raw)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var b bytes.Buffer
	b.Grow(len(objects) + len(objects)/4 + 128)
	b.WriteString(`{"uid":`)
	b.Write(rawjson.Quote(string(req.UID)))
	b.WriteString(`,"convertedObjects":[`)
	i := 0
	for text, err := range rawjson.Elements(objects) {
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("request.objects: %v", err))
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped at request.objects[%d]: %w", i, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		o, err := cut(text)
		if err != nil {
			return nil, fmt.Errorf("request.objects[%d]: cannot convert %s to %s: %w", i, o, desired, err)
		}
		if o.kind.GroupVersion() != desired {
			if text, err = h.registry.convert(ctx, o, desired); err != nil {
				return nil, fmt.Errorf("request.objects[%d]: %w", i, err)
			}
		}
		b.Write(text)
		i++
	}
	b.WriteString(`],"result":{"status":"Success"}}`)
	return b.Bytes(), nil
}

// parse cuts a ConversionRequest.
func parse(request []byte) (desired schema.GroupVersion, objects []byte, err error) {
	objects = []byte(`[]`)
	for m, err := range rawjson.Members(request) {
		if err != nil {
			return desired, nil, fmt.Errorf("request: %w", err)
		}
		switch m.Name {
		case "desiredAPIVersion":
			s, _ := rawjson.String(m.Value)
			if desired, err = schema.ParseGroupVersion(s); err != nil {
				return desired, nil, fmt.Errorf("request.desiredAPIVersion: %w", err)
			}
		case "objects":
			if string(m.Value) != "null" { // an empty list, as Go encodes it
				objects = m.Value
			}
		}
	}
	if desired.Empty() {
		return desired, nil, fmt.Errorf("request.desiredAPIVersion is missing")
	}
	return desired, objects, nil
}

// failure is the response that the API server turns into an error for the user.
func failure(req review.Request, err error) []byte {
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

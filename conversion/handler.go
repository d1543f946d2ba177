package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/handlerinfo"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
)

// Option configures the handler of [NewHandler].
type Option func(*handler)

// maxRequestBytes bounds a request: the API server sends all objects of a list in one.
const maxRequestBytes = 256 << 20

type handler struct {
	registry *Registry
	observe  func(Observation)
}

// NewHandler returns the conversion webhook of the registry's kinds. It answers
// ConversionReviews of apiextensions.k8s.io/v1 and v1beta1 on any path. The answer has the
// API version of the request.
//
// The handler converts all objects of a review, in their order, or none. If a conversion
// fails, the response names the failed object and the reason, and the API server shows this
// message to the user. Objects that have the desired version already are returned
// unchanged. Conversion stops when the API server closes the connection.
//
// If a request is not a valid review, the handler answers with an HTTP error and a Status:
//
//   - 400 if the body is not a ConversionReview,
//   - 405 if the method is not POST,
//   - 413 if the body has more than 256 MiB, or
//   - 415 if the body is not JSON.
//
// NewHandler calls [Registry.Check] without CRDs, and panics if Check returns an error.
// Therefore mistakes are found at startup.
func NewHandler(r *Registry, opts ...Option) http.Handler {
	h := &handler{registry: r}
	for _, opt := range opts {
		opt(h)
	}
	if err := r.Check(); err != nil {
		panic(err)
	}
	var kinds handlerinfo.Served
	for _, k := range r.Kinds() {
		kinds.Conversions = append(kinds.Conversions, handlerinfo.Kind{GroupKind: k.GroupKind, Versions: k.Versions})
	}
	return handlerinfo.With(review.Protocol{
		Group:   "apiextensions.k8s.io",
		Kind:    "ConversionReview",
		New:     func() review.Members { return &request{registry: r} },
		Answer:  h.answer,
		Failure: failure,
	}.Handler(maxRequestBytes), kinds)
}

// answer converts the objects of a ConversionRequest. A request takes this path:
//
//   - [review.Protocol] reads the body, and parses all of it: the members of the request with
//     request.Read, each object with Registry.parseObject;
//   - answer splits a long list into batches, and convertBatch loops over the objects;
//   - converter.convertObject finds the steps from one version to the other, and convertAlong
//     takes the object's payload through them: decode, conversion function, encode;
//   - object.append writes the converted object behind those before it.
func (h *handler) answer(ctx context.Context, req *review.Request, b []byte) ([]byte, error) {
	asked := req.Members.(*request)
	if asked.desired == "" {
		return nil, apierrors.NewBadRequest("request.desiredAPIVersion is required")
	}
	to, err := h.registry.groupVersion(asked.desired)
	if err != nil {
		return nil, apierrors.NewBadRequest("request.desiredAPIVersion: " + err.Error())
	}
	var begin time.Time
	if h.observe != nil {
		begin = time.Now()
	}
	b = append(b, `{"uid":`...)
	b = rawjson.AppendQuote(b, string(req.UID))
	b = append(b, `,"convertedObjects":[`...)

	all := batch{objects: asked.objects, text: b}
	if len(asked.objects) >= longList && runtime.GOMAXPROCS(0) > 1 {
		h.convertInParallel(ctx, &all, to)
	} else {
		h.convertAll(ctx, &all, to)
	}
	if h.observe != nil {
		if all.err != nil {
			all.seen = nil // the answer has no objects
		}
		h.observe(Observation{To: to, Objects: all.seen, Failed: all.failed, Err: all.err, Duration: time.Since(begin)})
	}
	if all.err != nil {
		return nil, all.err
	}
	return append(all.text, `],"result":{"status":"Success"}}`...), nil
}

// batch is some of a review's objects in a row, and their results.
type batch struct {
	objects []object
	first   int    // the index of the first one
	text    []byte // the response so far, or the converted objects, joined by commas
	seen    map[schema.GroupVersionKind]int
	failed  schema.GroupVersionKind
	err     error // of the first object that failed
}

// convertAll converts the objects of a batch, until one fails.
func (h *handler) convertAll(ctx context.Context, b *batch, to schema.GroupVersion) {
	c := h.registry.newConverter()
	if h.convertBatch(ctx, c, b, to); b.err == nil {
		h.registry.release(c)
	}
}

// convertBatch converts the objects of a batch, until one fails.
func (h *handler) convertBatch(ctx context.Context, c *converter, b *batch, to schema.GroupVersion) {
	for i := range b.objects {
		if err := ctx.Err(); err != nil {
			b.err = fmt.Errorf("stopped at request.objects[%d]: %w", b.first+i, err)
			return
		}
		if i > 0 {
			b.text = append(b.text, ',')
		}
		text, err := c.convertObject(ctx, b.text, &b.objects[i], to)
		if err != nil {
			b.failed, b.err = c.knownKind(), fmt.Errorf("request.objects[%d]: %w", b.first+i, err)
			return
		}
		b.text = text
		if h.observe != nil {
			b.count(c.knownKind(), 1)
		}
	}
}

const (
	longList  = 200 // below, a second processor costs more than it gives
	batchSize = 16
)

// convertInParallel converts the objects of a long list with one goroutine for each
// processor. Each converts another batch at a time, until one fails.
func (h *handler) convertInParallel(ctx context.Context, all *batch, to schema.GroupVersion) {
	var batches []batch
	for objects := range slices.Chunk(all.objects, batchSize) {
		batches = append(batches, batch{objects: objects, first: len(batches) * batchSize})
	}
	converters := make([]*converter, min(runtime.GOMAXPROCS(0), len(batches)))
	var taken atomic.Int64
	work := func(c *converter) {
		c.text = c.text[:0]
		for i := int(taken.Add(1)) - 1; i < len(batches); i = int(taken.Add(1)) - 1 {
			b := &batches[i]
			begin := len(c.text)
			b.text = c.text
			h.convertBatch(ctx, c, b, to)
			c.text, b.text = b.text, b.text[begin:]
			if b.err != nil {
				taken.Store(int64(len(batches))) // all batches before have been taken
			}
		}
	}
	var others sync.WaitGroup
	for i := range converters {
		c := h.registry.newConverter()
		if converters[i] = c; i > 0 {
			others.Go(func() { work(c) })
		}
	}
	work(converters[0])
	others.Wait()
	for i, b := range batches {
		if all.failed, all.err = b.failed, b.err; b.err != nil {
			return
		}
		if i > 0 {
			all.text = append(all.text, ',')
		}
		all.text = append(all.text, b.text...)
		for kind, n := range b.seen {
			all.count(kind, n)
		}
	}
	for _, c := range converters {
		h.registry.release(c)
	}
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

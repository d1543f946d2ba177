package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"runtime"
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

type handler struct {
	registry *Registry
	observe  func(Observation)
	seed     maphash.Seed
	late     sync.Map // hashes and desired versions of objects: see watch
	areLate  atomic.Int64
}

// NewHandler returns the conversion webhook of the registry's kinds. It answers ConversionReviews
// of apiextensions.k8s.io/v1 and v1beta1 on any path, in the API version of the request.
//
// The handler converts all objects of a review, in their order, or none. If a conversion fails, the
// API server shows the user the message of the response, which names the object and the reason.
// Objects that have the desired version already are returned unchanged. Conversion stops when the
// API server closes the connection or, as the package documentation says, before it gives up.
//
// If a request is not a valid review, the handler answers with an HTTP error and a Status:
//
//   - 400 if the body is not a ConversionReview,
//   - 405 if the method is not POST,
//   - 413 if the review alone needs more memory than reviews may take,
//   - 415 if the body is not JSON, or
//   - 503 if the other reviews leave too little memory, so that the API server repeats the review.
//
// All handlers of a process share a part of its memory limit for their reviews; see package
// webhook.
//
// NewHandler panics if [Registry.Check] without CRDs returns an error, so that mistakes are found
// at startup.
func NewHandler(r *Registry, opts ...Option) http.Handler {
	h := &handler{registry: r, seed: maphash.MakeSeed()}
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
		InParts: true,
	}.Handler(), kinds)
}

// answer converts the objects of a ConversionRequest. A request takes this path:
//
//   - [review.Protocol] reads the body, and parses the members of the request with request.Read. It
//     parses each object of a small request with Registry.parseObject, and cuts those of a large one
//     into parts;
//   - convert loops over the objects. convertInParallel parses and converts one part after another;
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

	all := batch{text: b}
	h.convert(ctx, req, asked, &all, to)
	if h.observe != nil && !review.Refused(all.err) { // which says nothing about the conversion
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

// convert converts the objects of a request.
func (h *handler) convert(ctx context.Context, req *review.Request, asked *request, all *batch, to schema.GroupVersion) {
	defer func() { asked.parts, asked.text = nil, nil }() // the next request must not hold them
	end, failed, err := h.watch(ctx, asked, to)
	defer end()
	if err != nil {
		all.failed, all.err = failed, err
		return
	}
	if asked.large {
		h.convertInParallel(ctx, req, asked.parts, all, to)
		return
	}
	c := h.registry.newConverter()
	for i := range asked.objects {
		if !h.convertNext(ctx, c, all, &asked.objects[i], nil, to) {
			return // the state of c is unknown
		}
	}
	h.registry.release(c)
}

// batch is some of a review's objects in a row, and their results.
type batch struct {
	list   []byte // the objects, joined by commas, if they are not parsed yet
	offset int    // of the list
	first  int    // the index of the first one
	n      int    // how many have been converted

	text   []byte // the response so far, or what this batch adds to it
	seen   map[schema.GroupVersionKind]int
	failed schema.GroupVersionKind
	err    error // of the first object that failed
}

// convertNext converts the next object of a batch, and reports whether it succeeded. With a cursor,
// the object is first read there.
func (h *handler) convertNext(ctx context.Context, c *converter, b *batch, o *object, at *rawjson.Cursor, to schema.GroupVersion) bool {
	i := b.first + b.n
	if err := ctx.Err(); err != nil {
		b.err = fmt.Errorf("stopped at request.objects[%d]: %w", i, err)
		return false
	}
	if i > 0 {
		b.text = append(b.text, ',')
	}
	text, err := c.convertObject(ctx, b.text, o, at, to)
	if err != nil {
		b.failed, b.err = h.registry.knownKind(o), fmt.Errorf("request.objects[%d]: %w", i, err)
		return false
	}
	b.text = text
	b.n++
	if h.observe != nil {
		b.count(h.registry.knownKind(o), 1)
	}
	return true
}

// convertInParallel converts the parts of a large request, one at a time in each goroutine, until
// one fails. There is a goroutine for each processor, as far as the memory allows: that of the
// response, which mostly is not much larger than the request, and of the largest part in each
// goroutine.
func (h *handler) convertInParallel(ctx context.Context, req *review.Request, parts []batch, all *batch, to schema.GroupVersion) {
	size, largest := 0, 0
	for _, b := range parts {
		size, largest = size+len(b.list), max(largest, review.Cost(b.list))
	}
	if all.err = req.Take(size + size/4 + largest); all.err != nil {
		return
	}
	workers := 1
	for workers < min(runtime.GOMAXPROCS(0), len(parts), 8) && req.TakeIfRoom(largest, size) { // the response may be larger
		workers++
	}
	var taken atomic.Int64
	work := func() {
		c := h.registry.newConverter()
		var o object
		for i := int(taken.Add(1)) - 1; i < len(parts); i = int(taken.Add(1)) - 1 {
			b := &parts[i]
			b.text = c.text[:0]
			cursor := rawjson.NewCursor(b.list)
			for h.convertNext(ctx, c, b, &o, &cursor, to) && cursor.Next('[') {
			}
			c.text = b.text
			if b.err == nil {
				b.err = req.Take(max(0, len(b.text)-len(b.list)-len(b.list)/4))
			}
			if b.err != nil {
				taken.Store(int64(len(parts))) // all parts before have been taken
				return
			}
			b.text = bytes.Clone(b.text) // c.text is for the next part
		}
		h.registry.release(c)
	}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	req.Pieces = append(req.Pieces, all.text)
	all.text = nil
	for _, b := range parts {
		if all.failed, all.err = b.failed, b.err; b.err != nil {
			return
		}
		req.Pieces = append(req.Pieces, b.text)
		for kind, n := range b.seen {
			all.count(kind, n)
		}
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

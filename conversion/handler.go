package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
	"github.com/crdkit/crdkit/internal/served"
)

// Option configures the handler of [NewHandler].
type Option func(*handler)

type handler struct {
	registry  *Registry
	observers []func(Observation)
	mutex     sync.Mutex
	late      []*request // whose conversion has not returned in time: see watch
}

// NewHandler returns the conversion webhook of the registry's kinds. It answers ConversionReviews
// of apiextensions.k8s.io/v1 and v1beta1 on any path, in the API version of the request.
//
// The handler converts all objects of a review, in their order, or none. If a conversion fails, the
// API server shows the user the message of the response, which names the object and the reason.
// Objects that have the desired version already are returned unchanged. Conversion stops when the
// API server closes the connection or, as the package documentation says, before it gives up.
//
// If a request is not a valid review, the response is a failure, or, unless the UID and the version of the
// review could be read, an HTTP error and a Status:
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
	h := &handler{registry: r}
	for _, opt := range opts {
		opt(h)
	}
	if err := r.Check(); err != nil {
		panic(err)
	}
	var kinds served.Info
	for _, k := range r.Kinds() {
		kinds.Conversions = append(kinds.Conversions, served.Kind{GroupKind: k.GroupKind, Versions: k.Versions})
	}
	return served.With(review.Protocol{
		Group:   "apiextensions.k8s.io",
		Kind:    "ConversionReview",
		Answer:  h.answer,
		Failure: failure,
		InParts: true,
	}.Handler(), kinds)
}

// answer converts the objects of a ConversionRequest, which review.Protocol has received:
//
//   - readRequest reads its members. It parses the objects of a small request, and cuts those of a large
//     one into parts;
//   - convertNext converts one object after another. convertInParallel parses and converts the parts;
//   - converter.convert finds the steps from one version to the other, and along takes the object's
//     payload through them. In each step, walk decodes it, calls the conversion function, and encodes the
//     result, or calls the transform of AddFields or Lossless;
//   - object.append writes the converted object behind those before it.
func (h *handler) answer(ctx context.Context, req *review.Request) ([]byte, error) {
	c := h.registry.newConverter()
	asked, err := readRequest(req, c)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	b := req.Begin()
	if !req.Large {
		b = slices.Grow(b, len(asked.text)+len(asked.text)/8)
	}
	b = rawjson.AppendQuote(append(b, `{"uid":`...), string(req.UID))
	all := part{text: append(b, `,"convertedObjects":[`...)}
	defer h.watch(ctx, &asked)()
	all.failed, all.err = h.unreturned(&asked)
	switch {
	case all.err != nil:
	case req.Large:
		h.convertInParallel(ctx, req, asked.parts, &all, asked.to)
	default:
		for i := range c.objects {
			if !h.convertNext(ctx, c, &c.objects[i], &all, asked.to) {
				break
			}
		}
	}
	if len(h.observers) > 0 && !review.Refused(all.err) { // which says nothing about the conversion
		if all.err != nil {
			all.seen = nil // the answer has no objects
		}
		o := Observation{To: asked.to, Objects: all.seen, Failed: all.failed, Err: all.err, Duration: time.Since(begin)}
		for _, observe := range h.observers {
			observe(o)
		}
	}
	if all.err != nil {
		return nil, all.err
	}
	h.registry.release(c)
	return append(all.text, `],"result":{"status":"Success"}}`...), nil
}

// convertNext converts the next object of a part, and reports whether it succeeded.
func (h *handler) convertNext(ctx context.Context, c *converter, o *object, p *part, to schema.GroupVersion) bool {
	i := p.first + p.n
	if err := ctx.Err(); err != nil {
		p.err = fmt.Errorf("stopped at request.objects[%d]: %w", i, err)
		return false
	}
	if i > 0 {
		p.text = append(p.text, ',')
	}
	text, err := c.convert(ctx, p.text, o, to)
	if err != nil {
		p.failed, p.err = h.registry.graph.known(o), fmt.Errorf("request.objects[%d]: %w", i, err)
		return false
	}
	p.text = text
	p.n++
	if len(h.observers) > 0 {
		p.count(h.registry.graph.known(o), 1)
	}
	return true
}

// convertInParallel converts the parts of a large request, one at a time in each goroutine, until
// one fails. There is a goroutine for each processor, as far as the memory allows: that of the
// response, which mostly is not much larger than the request, of the outlines, and of the largest part
// in each goroutine.
func (h *handler) convertInParallel(ctx context.Context, req *review.Request, parts []part, all *part, to schema.GroupVersion) {
	size, largest := 0, 0
	for _, p := range parts {
		size, largest = size+len(p.list)+64*len(p.large), max(largest, review.Cost(p.list))
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
		c, o := h.registry.newConverter(), &object{}
		for i := int(taken.Add(1)) - 1; i < len(parts); i = int(taken.Add(1)) - 1 {
			p := &parts[i]
			p.text = req.Piece(len(p.list) + len(p.list)/8)
			h.convertPart(ctx, c, o, p, to)
			if p.err == nil {
				p.err = req.Take(max(0, len(p.text)-len(p.list)-len(p.list)/4))
			}
			if p.err != nil {
				taken.Store(int64(len(parts))) // all parts before have been taken
				return
			}
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
	for _, p := range parts {
		if all.failed, all.err = p.failed, p.err; p.err != nil {
			return
		}
		req.Pieces = append(req.Pieces, p.text)
		for kind, n := range p.seen {
			all.count(kind, n)
		}
	}
}

// convertPart parses and converts the objects of a part, until one fails.
func (h *handler) convertPart(ctx context.Context, c *converter, o *object, p *part, to schema.GroupVersion) {
	c.object = o
	defer c.recovered(ctx, to, &p.err)
	p.err = errors.New("a conversion function called runtime.Goexit") // unless this function returns
	for more := true; more; more = p.cursor.Next('[') {
		o.parse(&c.arena, h.registry.metadata, &p.cursor)
		if !h.convertNext(ctx, c, o, p, to) {
			return
		}
	}
	p.err = nil
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

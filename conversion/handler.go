package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

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

// Parallelism limits how many objects of one review are converted at a time, each
// in a goroutine of its own. The default is GOMAXPROCS. The order of the objects
// is kept in any case.
func Parallelism(n int) Option {
	return func(h *handler) { h.parallel = max(1, n) }
}

type handler struct {
	registry *Registry
	maxBytes int64
	parallel int
	observe  func(Observation)
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
	h := &handler{registry: r, maxBytes: 256 << 20, parallel: runtime.GOMAXPROCS(0)}
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
func (h *handler) answer(ctx context.Context, req review.Request, b []byte) ([]byte, error) {
	desired, objects, err := parse(req)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	b = append(b, `{"uid":`...)
	b = rawjson.AppendQuote(b, string(req.UID))
	b = append(b, `,"convertedObjects":[`...)
	begin := time.Now()
	b, seen, err := h.convertAll(ctx, objects, desired, b)
	if h.observe != nil {
		seen.To, seen.Err, seen.Duration = desired, err, time.Since(begin)
		h.observe(seen)
	}
	if err != nil {
		return nil, err
	}
	return append(b, `],"result":{"status":"Success"}}`...), nil
}

// convertAll converts all objects and appends them to b, or returns the error of
// the first that fails. seen says what has been converted, or failed.
func (h *handler) convertAll(ctx context.Context, objects [][]byte, desired schema.GroupVersion, b []byte) (_ []byte, seen Observation, _ error) {
	if n := min(h.parallel, (len(objects)+maxBatch-1)/maxBatch); n > 1 {
		return h.convertInParallel(ctx, objects, desired, b, n)
	}
	w := h.registry.newWorker(len(objects))
	defer h.registry.release(w)
	for i, object := range objects {
		text, err := h.convert(ctx, w, i, object, desired)
		if err != nil {
			return nil, Observation{Failed: w.known()}, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
		w.out = w.out[:0]
	}
	return b, h.seen(w), nil
}

// convert converts the object with that index.
func (h *handler) convert(ctx context.Context, w *worker, i int, object []byte, desired schema.GroupVersion) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		w.object.gv, w.object.kind = schema.GroupVersion{}, "" // this one is not to blame
		return nil, fmt.Errorf("stopped at request.objects[%d]: %w", i, err)
	}
	text, err := w.convert(ctx, object, desired)
	if err != nil {
		return nil, fmt.Errorf("request.objects[%d]: %w", i, err)
	}
	if h.observe != nil {
		w.count()
	}
	return text, nil
}

// seen adds up what workers have converted, if somebody wants to know.
func (h *handler) seen(workers ...*worker) (seen Observation) {
	if h.observe == nil {
		return seen
	}
	seen.Objects = map[schema.GroupVersionKind]int{}
	for _, w := range workers {
		for kind, n := range w.counts {
			seen.Objects[kind] += n
		}
	}
	return seen
}

// convertInParallel does what convertAll does, with several workers. They take
// objects by the batch, each the next that nobody has taken.
func (h *handler) convertInParallel(ctx context.Context, objects [][]byte, desired schema.GroupVersion, b []byte, n int) (_ []byte, seen Observation, _ error) {
	converted := make([][]byte, len(objects))
	var next atomic.Int64
	var mu sync.Mutex
	failed, failure := len(objects), error(nil)
	work := func(w *worker) {
		for {
			begin := int(next.Add(maxBatch)) - maxBatch
			if begin >= len(objects) {
				return
			}
			for i := begin; i < min(begin+maxBatch, len(objects)); i++ {
				var err error
				if converted[i], err = h.convert(ctx, w, i, objects[i], desired); err == nil {
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				if i < failed { // the batches before this one have been taken, and may fail too
					failed, failure, seen.Failed = i, err, w.known()
				}
				next.Store(int64(len(objects)))
				return
			}
		}
	}
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = h.registry.newWorker(len(objects))
		defer h.registry.release(workers[i]) // after the results have been appended
	}
	var wg sync.WaitGroup
	for _, w := range workers[1:] {
		wg.Go(func() { work(w) })
	}
	work(workers[0])
	wg.Wait()
	if failure != nil {
		return nil, seen, failure
	}
	for i, text := range converted {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	return b, h.seen(workers...), nil
}

// parse cuts a ConversionRequest.
func parse(req review.Request) (desired schema.GroupVersion, objects [][]byte, err error) {
	for _, m := range req.Members {
		switch m.Name {
		case "desiredAPIVersion":
			s, _ := rawjson.String(m.Value)
			if desired, err = schema.ParseGroupVersion(s); err != nil {
				return desired, nil, fmt.Errorf("request.desiredAPIVersion: %w", err)
			}
		case "objects":
			if m.Elements == nil && string(m.Value) != "null" { // an empty list, as Go encodes it
				return desired, nil, errors.New("request.objects is no list")
			}
			objects = m.Elements
		}
	}
	if desired.Empty() {
		return desired, nil, errors.New("request.desiredAPIVersion is missing")
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

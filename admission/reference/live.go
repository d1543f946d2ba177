package reference

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// LiveOption limits the requests that are made to the API server: the live reads
// of a [Target], or the permission checks of [Authorize].
type LiveOption func(*limits)

type limits struct {
	timeout     time.Duration
	concurrency int
	qps         float32
	burst       int
}

// LiveTimeout limits how long one question may take, waiting for its turn
// included. The default is 2 seconds: the API server gives a webhook 10, if its
// configuration says nothing.
func LiveTimeout(d time.Duration) LiveOption { return func(l *limits) { l.timeout = d } }

// LiveConcurrency limits how many requests are under way at a time. The default
// is 10.
func LiveConcurrency(n int) LiveOption { return func(l *limits) { l.concurrency = n } }

// LiveRate limits how many requests are made a second, and how many at once after
// a pause, as the fields QPS and Burst of rest.Config do. The defaults are 20 and
// 100 for live reads, 100 and 500 for permission checks. Over the limit a request
// is not decided, with 429 and a second to wait; nobody is denied for it. So an
// object that needs more requests than the burst is never decided. The limit is one
// for all users: who exhausts it with names that nothing has, delays those who use
// names that the informer does not know yet, and nobody else.
func LiveRate(qps float32, burst int) LiveOption {
	return func(l *limits) { l.qps, l.burst = qps, burst }
}

func (l limits) check() error {
	var errs []error
	if l.timeout <= 0 {
		errs = append(errs, fmt.Errorf("LiveTimeout is %s", l.timeout))
	}
	if l.concurrency < 1 {
		errs = append(errs, fmt.Errorf("LiveConcurrency is %d", l.concurrency))
	}
	if l.qps <= 0 || l.burst < 1 {
		errs = append(errs, fmt.Errorf("LiveRate is %g and %d", l.qps, l.burst))
	}
	return errors.Join(errs...)
}

// live asks the API server, within its limits.
//
// Concurrent questions for the same key share a request, if it has not been sent
// yet. One that is under way may have been answered already, and that answer would
// be older than the question: an object that was created in between would be
// missing. Who comes then waits for the next request of the key, with all others
// who came. Unless callers give up, there is at most one under way for a key, and
// one that waits.
type live[K comparable, V any] struct {
	ask     func(ctx context.Context, key K) (V, error)
	timeout time.Duration
	slots   chan struct{}
	limiter flowcontrol.PassiveRateLimiter

	mu   sync.Mutex
	last map[K]*request[V]
}

// request is one request to the API server, and those who wait for it.
type request[V any] struct {
	ctx    context.Context
	cancel context.CancelFunc
	before <-chan struct{} // closed when the one before it for the same key is done
	done   chan struct{}   // closed when value and err are set
	value  V
	err    error

	// The mutex of live guards these.
	closed  bool // nobody may join any more
	waiting int
}

func newLive[K comparable, V any](l limits, ask func(ctx context.Context, key K) (V, error)) *live[K, V] {
	return &live[K, V]{
		ask:     ask,
		timeout: l.timeout,
		slots:   make(chan struct{}, l.concurrency),
		limiter: flowcontrol.NewTokenBucketPassiveRateLimiter(l.qps, l.burst),
		last:    map[K]*request[V]{},
	}
}

var errTooMany = errors.New("too many requests to the API server would be made")

// do returns the answer for a key. It does not wait longer than its context, and
// what happens to that does not touch the others who wait.
func (l *live[K, V]) do(ctx context.Context, key K) (V, error) {
	r, err := l.join(ctx, key)
	if err != nil {
		var none V
		return none, err
	}
	select {
	case <-r.done:
	case <-r.ctx.Done(): // the time is over, though ask may not care
	case <-ctx.Done():
	}
	l.leave(r)
	select {
	case <-r.done:
		return r.value, r.err
	default:
		var none V
		return none, cause(ctx, r.ctx)
	}
}

// cause says why the first of two contexts that has ended did.
func cause(contexts ...context.Context) error {
	for _, ctx := range contexts {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return context.Canceled
}

func (l *live[K, V]) join(ctx context.Context, key K) (*request[V], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last[key]
	if last != nil && !last.closed {
		last.waiting++
		return last, nil
	}
	if !l.limiter.TryAccept() {
		return nil, errTooMany
	}
	r := &request[V]{done: make(chan struct{}), waiting: 1}
	r.ctx, r.cancel = context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	if last != nil {
		r.before = last.done
	}
	l.last[key] = r
	go l.run(key, r)
	return r, nil
}

// leave ends a request for which nobody waits.
func (l *live[K, V]) leave(r *request[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.waiting--; r.waiting == 0 {
		r.closed = true
		r.cancel()
	}
}

func (l *live[K, V]) run(key K, r *request[V]) {
	r.value, r.err = l.turn(key, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	r.closed = true
	if l.last[key] == r {
		delete(l.last, key)
	}
	close(r.done)
	r.cancel()
}

// turn waits until it is the request's turn, and asks.
func (l *live[K, V]) turn(key K, r *request[V]) (none V, _ error) {
	if r.before != nil {
		select {
		case <-r.before:
		case <-r.ctx.Done():
			return none, r.ctx.Err()
		}
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-r.ctx.Done():
		return none, r.ctx.Err()
	}
	l.mu.Lock()
	r.closed = true
	l.mu.Unlock()
	if err := r.ctx.Err(); err != nil {
		return none, err
	}
	return l.guarded(r.ctx, key)
}

// guarded asks; a panic, which nobody could recover in this goroutine, is an error.
func (l *live[K, V]) guarded(ctx context.Context, key K) (_ V, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return l.ask(ctx, key)
}

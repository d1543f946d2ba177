package reference

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/klog/v2"
)

// RequestOption limits the requests that are made to the API server: the live reads
// of a [Target], or the permission checks of [Authorize]. The limits are those of the
// target or of the option: whatever uses it shares them.
type RequestOption func(*limits)

type limits struct {
	timeout     time.Duration
	concurrency int
	qps         float32
	burst       int
	faults      []error
}

// RequestTimeout limits how long one request may take, from when it is its turn, and
// also how long it may wait for that: for the rate, for others that are under way,
// and for an earlier one of the same name. So one question takes twice as long at
// most; and so do all those of one object together, live reads and permission checks
// added. The default is 2 seconds, which makes 4, or 8 with [Authorize]: the API
// server gives a webhook 10, if its configuration says nothing.
func RequestTimeout(d time.Duration) RequestOption { return func(l *limits) { l.timeout = d } }

// RequestConcurrency limits how many requests are under way at a time. The default
// is 10.
func RequestConcurrency(n int) RequestOption { return func(l *limits) { l.concurrency = n } }

// RequestRate limits how many requests are made a second, and how many at once after
// a pause, as the fields QPS and Burst of rest.Config do. The defaults are 20 and
// 100 for live reads, 100 and 500 for permission checks. Over the limit a request
// waits, and if it would be too long (see [RequestTimeout]), it is not decided, with
// 429 and the seconds after which the rate allows it; nobody is denied for it. The
// limit is one for all users: who exhausts it with names that nothing has, delays
// those who use names that the informer does not know yet, and nobody else.
func RequestRate(qps float32, burst int) RequestOption {
	return func(l *limits) { l.qps, l.burst = qps, burst }
}

// with applies the options.
func (l limits) with(opts []RequestOption) limits {
	for i, opt := range opts {
		if opt == nil {
			l.faults = append(l.faults, fmt.Errorf("the option at %d is nil", i))
			continue
		}
		opt(&l)
	}
	return l
}

func (l limits) check() error {
	errs := l.faults
	if l.timeout <= 0 {
		errs = append(errs, fmt.Errorf("RequestTimeout is %s", l.timeout))
	}
	if l.concurrency < 1 {
		errs = append(errs, fmt.Errorf("RequestConcurrency is %d", l.concurrency))
	}
	if !(l.qps > 0) || l.burst < 1 {
		errs = append(errs, fmt.Errorf("RequestRate is %g and %d", l.qps, l.burst))
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
	limiter *rate.Limiter

	mu   sync.Mutex
	last map[K]*request[V]
}

// request is one request to the API server, and those who wait for it.
type request[V any] struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer     // cancels it when its time is over
	before <-chan struct{} // closed when the one before it for the same key is done
	token  *rate.Reservation
	done   chan struct{} // closed when value and err are set
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
		limiter: rate.NewLimiter(rate.Limit(l.qps), l.burst),
		last:    map[K]*request[V]{},
	}
}

// tooManyError says that the rate does not allow a request in time.
type tooManyError struct {
	wait time.Duration // until it does
	each time.Duration // longer for each one more
}

func (e *tooManyError) Error() string { return "too many requests to the API server would be made" }

// panicError is a panic of what should have answered.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// do returns the answer for a key. It does not wait longer than its context, and
// what happens to that does not touch the others who wait.
func (l *live[K, V]) do(ctx context.Context, key K) (none V, _ error) {
	r, err := l.join(ctx, key)
	if err != nil {
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
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	return none, context.Cause(r.ctx)
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
	token, err := l.reserve(ctx)
	if err != nil {
		return nil, err
	}
	r := &request[V]{token: token, done: make(chan struct{}), waiting: 1}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.timer = time.AfterFunc(l.timeout, func() { r.cancel(context.DeadlineExceeded) })
	if last != nil {
		r.before = last.done
	}
	l.last[key] = r
	go l.run(key, r)
	return r, nil
}

// reserve takes a token of the rate that is there in time. If there is none, it takes
// nothing: who would wait in vain must not make others wait.
func (l *live[K, V]) reserve(ctx context.Context) (*rate.Reservation, error) {
	now := time.Now()
	patience := l.timeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, deadline.Sub(now))
	}
	token := l.limiter.ReserveN(now, 1)
	if wait := token.DelayFrom(now); wait >= patience {
		token.CancelAt(now)
		return nil, &tooManyError{wait: wait, each: time.Duration(float64(time.Second) / float64(l.limiter.Limit()))}
	}
	return token, nil
}

// leave ends a request for which nobody waits.
func (l *live[K, V]) leave(r *request[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.waiting--; r.waiting == 0 {
		r.closed = true
		r.cancel(context.Canceled)
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
	r.timer.Stop()
	close(r.done)
	r.cancel(context.Canceled)
}

// turn waits until it is the request's turn, and asks.
func (l *live[K, V]) turn(key K, r *request[V]) (none V, _ error) {
	if r.before != nil {
		select {
		case <-r.before:
		case <-r.ctx.Done():
			r.token.Cancel()
			return none, context.Cause(r.ctx)
		}
	}
	if wait := r.token.Delay(); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			r.token.Cancel()
			return none, context.Cause(r.ctx)
		}
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-r.ctx.Done():
		return none, context.Cause(r.ctx)
	}
	l.mu.Lock()
	r.closed = true
	l.mu.Unlock()
	if !r.timer.Stop() || r.ctx.Err() != nil {
		<-r.ctx.Done()
		return none, context.Cause(r.ctx)
	}
	r.timer.Reset(l.timeout)
	value, err := l.guarded(r.ctx, key)
	if over := context.Cause(r.ctx); err != nil && over != nil {
		err = over // and not that the context was cancelled
	}
	return value, err
}

// guarded asks; a panic, which nobody could recover in this goroutine, is an error,
// and its stack is in the log.
func (l *live[K, V]) guarded(ctx context.Context, key K) (_ V, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
			logPanic(ctx, err, "A request to the API server panicked")
		}
	}()
	return l.ask(ctx, key)
}

// logPanic logs a panic where its stack still is.
func logPanic(ctx context.Context, err error, message string) {
	klog.FromContext(ctx).Error(err, message, "stack", string(debug.Stack()))
}

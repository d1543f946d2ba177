package webhook

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// MaxBodyBytes is how many bytes of request bodies may be in memory at a time, over
// all requests in progress; the default is 512 MiB, enough for two of the largest
// reviews that the handlers of this library take. Bytes count from when they are read
// until the handler returns; what a request merely promises does not count, but each
// request with a body counts 16 KiB more, for the memory that it takes by being there.
//
// When there would be more, the request that has read most and is not done is cut off:
// its reads fail, and its answer is 503 with a Retry-After, which makes the API server
// try again (k8s.io/client-go/rest/with_retry.go). So many small requests go on while
// a few large ones are turned away. For that, an eighth is kept for requests of up to
// 1 MiB. It concerns Serve.
//
// The process takes more: the handlers of this library read into a buffer that doubles
// as it grows, and what is made of a body comes on top. Under attack, its heap was seen to be
// seven times this; GOMEMLIMIT makes the garbage collector keep less.
func MaxBodyBytes(n int64) Option {
	return func(s *settings) { s.maxBodyBytes = n }
}

const (
	smallBody   = 1 << 20
	requestCost = 16 << 10
)

var errCutOff = errors.New("webhook: the request was cut off: the bodies of all requests take too much memory")

// bodies counts what the bodies of all requests in progress take.
type bodies struct {
	max int64

	mu        sync.Mutex
	total     int64                  // of all requests in progress
	condemned int64                  // of those of them that have been cut off
	reading   map[*exchange]struct{} // those that are not done, nor cut off
}

func newBodies(limit int64) *bodies {
	return &bodies{max: limit, reading: map[*exchange]struct{}{}}
}

// begin counts a request that will be read.
func (b *bodies) begin(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading[x] = struct{}{}
	b.count(x, requestCost)
}

// read counts n bytes; done means that no more will be read. It says whether the
// request has been cut off.
func (b *bodies) read(x *exchange, n int, done bool) (cutOff bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.cutOff {
		x.size += int64(n)
		b.total += int64(n)
		b.condemned += int64(n)
		return true
	}
	if done {
		delete(b.reading, x)
	}
	b.count(x, int64(n))
	return x.cutOff
}

// end stops counting a request. Nothing touches it from elsewhere after that.
func (b *bodies) end(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.reading, x)
	b.total -= x.size
	if x.cutOff {
		b.condemned -= x.size
	}
}

// wasCutOff says whether a request has been cut off.
func (b *bodies) wasCutOff(x *exchange) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return x.cutOff
}

// count adds to what a request takes, and makes room. The caller holds the lock.
func (b *bodies) count(x *exchange, n int64) {
	x.size += n
	b.total += n
	// Those that were cut off are on their way out. Should they be slow at it, then
	// whoever reads on has to leave.
	if _, ok := b.reading[x]; ok && b.total > 2*b.max {
		b.cut(x)
	}
	for b.total-b.condemned > b.max-b.max/8 {
		var largest *exchange
		for y := range b.reading {
			if largest == nil || y.size > largest.size {
				largest = y
			}
		}
		if largest == nil || largest.size <= smallBody && b.total-b.condemned <= b.max {
			return
		}
		b.cut(largest)
	}
}

// cut cuts a request off. The caller holds the lock.
func (b *bodies) cut(x *exchange) {
	x.cutOff = true
	b.condemned += x.size
	delete(b.reading, x)
	// This ends a read that waits for the client. It cannot fail with the writers of
	// net/http; if it did, the next read would fail all the same.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Unix(1, 0))
}

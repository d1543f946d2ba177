package webhook

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// MaxBodyBytes is how many bytes of request bodies may be in memory at a time, over
// all requests in progress; the default is 512 MiB, enough for two of the largest
// reviews that the handlers of this library take. Bytes count from when they are read
// until the handler returns; what a request merely promises does not count.
//
// A request that does not fit is not read any further: its reads fail, and its answer
// is 503 with a Retry-After of a second, after which the API server tries again, up to
// ten times (k8s.io/client-go/rest/with_retry.go). An eighth is kept for requests of up
// to 1 MiB, so that these go on while large ones are turned away.
//
// On top come buffers that double as they grow, what handlers make of the bodies, and up
// to 256 KiB that net/http keeps of a connection.
func MaxBodyBytes(n int64) Option {
	return func(s *settings) { s.maxBodyBytes = n }
}

// smallBody is the size up to which a body may take the last eighth.
const smallBody = 1 << 20

// memory bounds what the bodies of all requests take together.
type memory struct {
	max   int64
	taken atomic.Int64
}

// body counts what is read of the body of a request.
type body struct {
	io.ReadCloser
	memory  *memory
	refused atomic.Bool

	mu    sync.Mutex // http.TimeoutHandler leaves a goroutine behind that reads on
	size  int64
	ended bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.take(int64(n)) {
		return 0, errors.New("webhook: the bodies of all requests take too much memory")
	}
	return n, err
}

// take counts n bytes more, and reports whether there is memory for them.
func (b *body) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return !b.refused.Load()
	}
	b.size += n
	limit := b.memory.max
	if b.size > smallBody {
		limit -= limit / 8
	}
	if b.memory.taken.Add(n) <= limit {
		return true
	}
	// At once, rather than when the handler returns: until then, others would be refused
	// that do fit.
	b.memory.taken.Add(-b.size)
	b.size, b.ended = 0, true
	b.refused.Store(true)
	return false
}

// end gives back what was taken. Later reads by a goroutine of the handler are not
// counted.
func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory.taken.Add(-b.size)
	b.size, b.ended = 0, true
}

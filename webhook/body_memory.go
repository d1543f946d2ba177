package webhook

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// MaxBodyBytes limits the memory for the bodies of all requests in progress together. The
// default is 512 MiB, which is enough for two of the largest reviews that the handlers of this
// library accept. A byte counts from the time it is read until the handler returns. The
// Content-Length of a request does not count.
//
// If a request exceeds the limit, reads of its body fail. The response is 503 with a
// Retry-After of one second. The API server then retries up to ten times
// (k8s.io/client-go/rest/with_retry.go). One eighth of the limit is reserved for requests of
// up to 1 MiB, which are thus served while large requests are rejected.
//
// The limit does not include buffers that double as they grow, the objects that handlers
// decode, and up to 256 KiB that net/http buffers for each connection.
func MaxBodyBytes(n int64) Option {
	return func(s *settings) { s.maxBodyBytes = n }
}

// smallBody is the size up to which a body may use the reserved eighth.
const smallBody = 1 << 20

// memory limits the memory of all bodies together.
type memory struct {
	max   int64
	taken atomic.Int64
}

// body counts the bytes that are read from the body of a request.
type body struct {
	io.ReadCloser
	memory  *memory
	refused atomic.Bool

	mu    sync.Mutex // http.TimeoutHandler leaves a goroutine that continues to read
	size  int64
	ended bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.take(int64(n)) {
		return 0, errors.New("webhook: the request bodies exceed the memory limit")
	}
	return n, err
}

// take counts n more bytes, and reports whether they fit into memory.
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
	// Release the memory now, and not when the handler returns, so that other requests fit.
	b.memory.taken.Add(-b.size)
	b.size, b.ended = 0, true
	b.refused.Store(true)
	return false
}

// end releases the memory. Later reads by a goroutine of the handler are not counted.
func (b *body) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory.taken.Add(-b.size)
	b.size, b.ended = 0, true
}

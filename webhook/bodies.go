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
// until the handler returns; what a request merely promises does not count.
//
// When there would be more, a request that is still being read is cut off: its reads
// fail, and its answer is 503 with a Retry-After, which makes the API server try again
// (k8s.io/client-go/rest/with_retry.go). It is the one of which most has been read, if
// that is more than 1 MiB; else one of the connection whose unfinished requests have
// most. So many small requests go on while a few large ones are turned away: for that,
// an eighth is kept for requests of up to 1 MiB. And a connection that sends little is
// not turned away for what others send.
//
// As many bytes again may be taken by the requests themselves, with or without a body:
// each counts 16 KiB, more if its header is larger than 4 KiB, from when its header is
// there until the handler returns. When there would be more, the connection that takes most of it
// is closed; if that is the one of the new request, then this is answered with 503
// instead, unless there are twice as many.
//
// It concerns Serve. What it does not bound: the handlers of this library read into a
// buffer that doubles as it grows, and what is made of a body, and the answer, come on
// top; so does what net/http keeps of a connection, up to 256 KiB of bodies that the
// handler has not read among it; and what a handler does after it has returned, as it
// may behind [http.TimeoutHandler]. Under attack, the heap was seen to be seven times
// this; GOMEMLIMIT makes the garbage collector keep less. A body is taken to be here when
// the handler has read it to its end ([io.EOF]): who stops before, as a json.Decoder may,
// counts as receiving while it works.
func MaxBodyBytes(n int64) Option {
	return func(s *settings) { s.maxBodyBytes = n }
}

const smallBody = 1 << 20

var errCutOff = errors.New("webhook: the request was cut off: the bodies of all requests take too much memory")

// bodies counts what has been read of the bodies of all requests in progress. Nothing
// that it does takes longer for there being many small ones.
type bodies struct {
	max int64

	mu        sync.Mutex
	total     int64                  // of all requests in progress
	condemned int64                  // of those of them that have been cut off
	large     map[*exchange]struct{} // those larger than smallBody that are being read
	shares    shares                 // what has been read of requests that are being read
}

func newBodies(limit int64) *bodies {
	return &bodies{max: limit, large: map[*exchange]struct{}{}}
}

// read counts n bytes; done means that no more will be read. It says whether the
// request has been cut off. It may be called after the end, by a handler that has left
// somebody behind who reads: that is no matter then.
func (b *bodies) read(x *exchange, n int, done bool) (cutOff bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x.uncounted {
		return x.cutOff
	}
	if x.cutOff {
		x.size += int64(n)
		b.total += int64(n)
		b.condemned += int64(n)
		return true
	}
	x.size += int64(n)
	b.total += int64(n)
	switch {
	case done:
		b.leave(x, x.size-int64(n))
	case n > 0:
		if x.reading == nil {
			x.reading = x.conn.reading.PushBack(x)
		}
		b.shares.add(&x.conn.read, int64(n))
		if x.size > smallBody {
			b.large[x] = struct{}{}
		}
	}
	b.makeRoom(x)
	return x.cutOff
}

// leave takes a request out of those that are being read. The caller holds the lock.
func (b *bodies) leave(x *exchange, counted int64) {
	if x.reading == nil {
		return
	}
	x.conn.reading.Remove(x.reading)
	x.reading = nil
	b.shares.add(&x.conn.read, -counted)
	delete(b.large, x)
}

// end stops counting a request. Nothing touches it from elsewhere after that.
func (b *bodies) end(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x.uncounted = true
	b.leave(x, x.size)
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

// makeRoom cuts requests off if need be, after x was read. The caller holds the lock.
func (b *bodies) makeRoom(x *exchange) {
	// Those that were cut off are on their way out. Should they be slow at it, then
	// whoever reads on has to leave.
	if x.reading != nil && b.total > 2*b.max {
		b.cut(x)
	}
	for b.total-b.condemned > b.max-b.max/8 {
		var largest *exchange
		for y := range b.large {
			if largest == nil || y.size > largest.size {
				largest = y
			}
		}
		if largest == nil {
			if b.total-b.condemned <= b.max {
				return
			}
			if largest = b.largestSmall(); largest == nil {
				return
			}
		}
		b.cut(largest)
	}
}

// largestSmall returns the largest request of the connection that has most; of equal
// ones, the oldest. The caller holds the lock.
func (b *bodies) largestSmall() (largest *exchange) {
	most := b.shares.largest()
	if most == nil {
		return nil
	}
	for e := most.conn.reading.Front(); e != nil; e = e.Next() {
		if y := e.Value.(*exchange); largest == nil || y.size > largest.size {
			largest = y
		}
	}
	return largest
}

// cut cuts a request off. The caller holds the lock.
func (b *bodies) cut(x *exchange) {
	x.cutOff = true
	b.condemned += x.size
	b.leave(x, x.size)
	// This ends a read that waits for the client. It cannot fail with the writers of
	// net/http; if it did, the next read would fail all the same.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Unix(1, 0))
}

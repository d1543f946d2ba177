package webhook

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// MaxConnections is how many connections there may be at a time; the default is 4096.
// One more does not wait: it takes the place of the one that is missed least, so that
// who holds connections without using them keeps nobody out. That is the oldest which
// never had a request, if these are more than an eighth of all; else the one that has been
// without a request for longest; else the one that has been sending its request for
// longest; else the oldest which never had one; else the one whose request has been worked
// on for longest. It concerns Serve.
func MaxConnections(n int) Option {
	return func(s *settings) { s.maxConnections = n }
}

// The uses of a connection. See closeOne for which is missed least.
const (
	fresh     = iota // never had a request
	idle             // between requests
	receiving        // all its requests are still being received
	working          // a request has been received and is not answered yet
	uses
)

// connections knows what each connection is used for.
type connections struct {
	max      int
	maxBytes int64 // that requests may take by being there

	mu     sync.Mutex
	n      int
	uses   [uses]list.List // of *connection, in the order in which they began
	total  int64           // what all requests in progress take
	open   int64           // what those on open connections take of it
	shares shares          // what those on each open connection take
}

// connection is one of them, underneath TLS.
type connection struct {
	net.Conn
	heard atomic.Int64 // when something was received, in Unix nanoseconds

	// Guarded by connections.
	requests, received int // in progress, and those of them with all of their body
	use                int
	since              time.Time     // when use began
	element            *list.Element // nil before it is counted, and when it is closed
	resets             time.Time     // see reset
	held               share         // of what requests take by being there
	http2              bool

	// Guarded by bodies.
	reading list.List // of *exchange, those of which something has been read, but not all
	read    share     // of what has been read of those
}

func newConnection(conn net.Conn) *connection {
	c := &connection{Conn: conn}
	c.held.conn, c.read.conn = c, c
	return c
}

// Read is for net.Conn.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// listener makes connections of what it accepts.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConnection(conn), nil
}

// underneath returns the connection underneath TLS.
func underneath(conn net.Conn) *connection {
	return conn.(*tls.Conn).NetConn().(*connection)
}

type connectionKey struct{}

// add is a http.Server's ConnContext: it is called for each new connection, one at a
// time, before anything is read from it.
func (cs *connections) add(ctx context.Context, conn net.Conn) context.Context {
	c := underneath(conn)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.n >= cs.max {
		cs.closeOne()
	}
	cs.n++
	c.since = time.Now()
	c.element = cs.uses[fresh].PushBack(c)
	return context.WithValue(ctx, connectionKey{}, c)
}

// closeOne closes the connection that is missed least. The caller holds the lock.
//
// Some are left the time for their handshake and the first request: else who holds all the
// others would drive each newcomer out by opening one more, which costs next to nothing.
func (cs *connections) closeOne() {
	order := []int{idle, receiving, fresh, working}
	if cs.uses[fresh].Len() > cs.max/8 {
		order = []int{fresh}
	}
	for _, use := range order {
		if e := cs.uses[use].Front(); e != nil {
			cs.close(e.Value.(*connection))
			return
		}
	}
}

// close closes a connection, at once: the farewell of TLS may take five seconds to
// send. The caller holds the lock.
func (cs *connections) close(c *connection) {
	cs.forget(c)
	_ = c.Close() // it is no matter to anybody that it was closed already
}

// forget takes a connection out. The caller holds the lock.
func (cs *connections) forget(c *connection) {
	if c.element != nil {
		cs.n--
		cs.uses[c.use].Remove(c.element)
		c.element = nil
		cs.open -= c.held.bytes
		cs.shares.add(&c.held, -c.held.bytes)
	}
}

// state is a http.Server's ConnState.
func (cs *connections) state(conn net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.forget(underneath(conn))
}

// begin counts a request in progress, and makes room for it. It says whether there is
// room.
func (cs *connections) begin(x *exchange) (admitted bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := x.conn
	c.http2 = x.proto == 2
	cs.change(c, 1, 0)
	cs.total += x.cost
	if c.element == nil {
		return true // whatever it does, it does for nobody
	}
	cs.open += x.cost
	cs.shares.add(&c.held, x.cost)
	for cs.open > cs.maxBytes {
		most := cs.shares.largest().conn
		if most == c && cs.open <= 2*cs.maxBytes {
			return false
		}
		cs.close(most)
	}
	// Those on closed connections are on their way out. Should they be slow at it, then
	// there is no room.
	if cs.total > 2*cs.maxBytes && c.element != nil {
		cs.close(c)
	}
	return true
}

// received says that all of a request in progress is here. It may be called again, and
// after the end.
func (cs *connections) received(x *exchange) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !x.received && !x.ended {
		x.received = true
		cs.change(x.conn, 0, 1)
	}
}

// A reset of HTTP/2 costs the client next to nothing, the server a request
// (CVE-2023-44487). net/http bounds how many it works on at a time; but what the kernel
// has taken in of such a connection keeps it busy long after the client has gone. So a
// client may give up maxResets requests as soon as it has sent them, and one more for
// each that it lets be answered, and each resetEvery. An API server that runs out of
// patience is not so soon: it waits a second at least (timeoutSeconds).
const (
	maxResets  = 100
	resetEvery = 100 * time.Millisecond
	resetSoon  = 100 * time.Millisecond
)

// reset says that the client has given a request up.
func (cs *connections) reset(x *exchange) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, now := x.conn, time.Now()
	if now.Sub(x.start) >= resetSoon {
		return
	}
	if c.resets.Before(now) {
		c.resets = now
	}
	c.resets = c.resets.Add(resetEvery)
	if c.resets.Sub(now) > maxResets*resetEvery && c.element != nil {
		cs.close(c)
	}
}

// end ends a request; answered says that the client has not given it up.
func (cs *connections) end(x *exchange, answered bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	x.ended = true
	c := x.conn
	if x.received {
		cs.change(c, -1, -1)
	} else {
		cs.change(c, -1, 0)
	}
	cs.total -= x.cost
	if c.element != nil {
		cs.open -= x.cost
		cs.shares.add(&c.held, -x.cost)
	}
	if answered {
		c.resets = c.resets.Add(-resetEvery)
	}
}

// change counts requests in progress, and how many of them have been received. The
// caller holds the lock.
func (cs *connections) change(c *connection, requests, received int) {
	c.requests += requests
	c.received += received
	use := idle
	switch {
	case c.received > 0:
		use = working
	case c.requests > 0:
		use = receiving
	}
	if c.element == nil || use == c.use {
		return
	}
	cs.uses[c.use].Remove(c.element)
	c.use, c.since = use, time.Now()
	c.element = cs.uses[use].PushBack(c)
}

// expectant says whether a connection of HTTP/1.1 without a request in progress may get
// one: within the last d, it was opened, or had its last request, or something was
// received that may become its next one.
func (cs *connections) expectant(d time.Duration) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, use := range []int{fresh, idle} {
		for e := cs.uses[use].Front(); e != nil; e = e.Next() {
			c := e.Value.(*connection)
			if !c.http2 && (time.Since(c.since) < d || time.Since(time.Unix(0, c.heard.Load())) < d) {
				return true
			}
		}
	}
	return false
}

// busy says whether there is a request in progress.
func (cs *connections) busy() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.total > 0
}

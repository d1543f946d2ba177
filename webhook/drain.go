package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// DrainTimeout limits the time that [Serve] waits for requests in flight, after the context is
// done and [ShutdownDelay] has passed. Requests that take longer are cut off. The default is
// 30 seconds, the longest time that the API server waits for a webhook.
func DrainTimeout(d time.Duration) Option {
	return func(s *settings) { s.drain = d }
}

// ShutdownDelay sets the time that [Serve] continues to accept connections after its context is
// done, because a deleted pod gets new connections for some seconds, until every node has updated
// its routes. The default is zero. During the delay, responses ask clients to close their
// connections, and [ShutdownCheck] returns an error. The terminationGracePeriodSeconds of the pod should
// exceed the sum of this delay and [DrainTimeout].
func ShutdownDelay(d time.Duration) Option {
	return func(s *settings) { s.delay = d }
}

// RunAlongside runs a function alongside the server, such as informers that the handlers read.
// [Serve] calls run when it begins to accept connections, so that the informers can read objects
// that this server converts, and waits until run has returned. The context of run has the values of
// Serve's context, but is done only after the last request has been answered or cut off, so that
// requests in flight can still use the informers. Several RunAlongside options may be given.
//
// If run returns an error, the server stops without [ShutdownDelay], and Serve returns the
// first such error. context.Canceled is not an error once the context of run is done. If run
// returns nil, the server continues. A panic of run is not recovered.
func RunAlongside(run func(context.Context) error) Option {
	return func(s *settings) { s.companions = append(s.companions, run) }
}

type stoppingKey struct{}

// ShutdownCheck is a readiness check for [Checks]. It returns an error once the [Serve] that serves
// the request is shutting down. Otherwise, and for requests that another server serves, it
// returns nil.
func ShutdownCheck(r *http.Request) error {
	if stopping, ok := r.Context().Value(stoppingKey{}).(context.Context); ok && stopping.Err() != nil {
		return errors.New("the server is shutting down")
	}
	return nil
}

// minIdle is the time that an HTTP/1.1 connection must be idle before the stopping server closes
// it. Within this time, the next response asks the client to close the connection, which matters
// because a client does not retry a POST on a connection that the server closes: the request may
// have been served (RFC 9110, section 9.2.2). Later, the client rarely uses the connection, because
// pools reuse the youngest first.
const minIdle = 5 * time.Second

// drain shuts the server down after the listener was closed. Requests that exceed the timeout
// are cut off.
func (s *server) drain(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// Half of a short timeout is left for the shutdown of HTTP/2 connections.
	for end := time.Now().Add(min(2*minIdle, timeout/2)); time.Now().Before(end) && s.idle.recent(); {
		time.Sleep(5 * time.Millisecond)
	}
	if err := s.http.Shutdown(ctx); err != nil {
		if s.inFlight.Load() == 0 { // Shutdown also waits for connections without a request
			return s.http.Close()
		}
		return fmt.Errorf("webhook: requests still in flight after %s were cut off: %w", timeout, errors.Join(err, s.http.Close()))
	}
	return nil
}

// idleConns has the HTTP/1.1 connections. It includes new connections, whose protocol is still
// unknown.
type idleConns struct {
	mu    sync.Mutex
	conns map[net.Conn]idleConn
}

// idleConn is since when a connection is idle. The time is zero while it has a request.
type idleConn struct {
	since time.Time
	used  bool // it has had a request
}

// note is the ConnState function of the http.Server.
func (i *idleConns) note(conn net.Conn, state http.ConnState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c, known := i.conns[conn]
	switch {
	case state == http.StateNew, state == http.StateIdle && known:
		i.conns[conn] = idleConn{time.Now(), c.used}
	case state == http.StateActive && known && (c.used || conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != "h2"):
		i.conns[conn] = idleConn{used: true}
	default:
		delete(i.conns, conn)
	}
}

// recent reports whether a connection has a request, or was opened or used within [minIdle].
// The response to a current request may have begun before the server stopped, without asking
// the client to close the connection.
func (i *idleConns) recent() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.conns {
		if c.since.IsZero() || time.Since(c.since) < minIdle {
			return true
		}
	}
	return false
}

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

// DrainTimeout is how long requests in flight may take after the context has ended,
// and [ShutdownDelay] has passed; what takes longer is cut off. The default is 30
// seconds, the longest that the API server waits for a webhook.
func DrainTimeout(d time.Duration) Option {
	return func(s *settings) { s.drain = d }
}

// ShutdownDelay is how long Serve goes on to serve after its context has ended, before
// it closes the listener; the default is not at all. A pod that is deleted gets new
// connections until every node has heard of it, for some seconds. Answers in this time
// tell the client to stop using the connection; [Draining] fails. In a pod,
// terminationGracePeriodSeconds should be more than this and [DrainTimeout] together.
func ShutdownDelay(d time.Duration) Option {
	return func(s *settings) { s.delay = d }
}

// RunAlongside runs a function beside the server: it is called when Serve begins to accept
// connections, with the values of Serve's context; and its own context ends only when
// the last request has been answered, or cut off. Serve waits for it before it returns.
// That is what informers need: requests in flight read from them, and they may read
// objects that are converted by this very server. It may be given several times.
//
// An error that run returns stops the server: as the end of Serve's context does, but
// without [ShutdownDelay]; and Serve returns the first. That its own context ended is
// not an error. If it returns nil, the server goes on. A panic is not caught.
func RunAlongside(run func(context.Context) error) Option {
	return func(s *settings) { s.companions = append(s.companions, run) }
}

type stoppingKey struct{}

// Draining is one of [Checks], for readiness: it returns an error from the moment that
// the context of the Serve which serves the request has ended, or something else stops
// it. Requests that are served by other means pass.
func Draining(r *http.Request) error {
	if stopping, ok := r.Context().Value(stoppingKey{}).(context.Context); ok && stopping.Err() != nil {
		return errors.New("the server is shutting down")
	}
	return nil
}

// minIdle is how long a connection of HTTP/1.1 must have been idle before the stopping
// server closes it. A client does not repeat a POST that it sent on a connection while
// that was closed: it may have been served (RFC 9110, section 9.2.2). Within this time,
// an answer sends the client away, and nothing is lost; after it, the connection lies
// deep in the client's pool, where the youngest is taken first, or was given up.
const minIdle = 5 * time.Second

// drain ends the server; the listener is closed already. Requests that take longer
// than the timeout are cut off.
func (s *server) drain(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	// Half of a short timeout is left for the farewell of HTTP/2.
	for end := time.Now().Add(min(2*minIdle, timeout/2)); time.Now().Before(end) && s.idle.recent(); {
		<-tick.C
	}
	if err := s.http.Shutdown(ctx); err != nil {
		if s.inFlight.Load() == 0 { // it waits for connections without a request, too
			return s.http.Close()
		}
		return fmt.Errorf("webhook: requests still in flight after %s were cut off: %w", timeout, errors.Join(err, s.http.Close()))
	}
	return nil
}

// idleConns knows since when connections of HTTP/1.1 have been without a request, and new
// ones, whose protocol is not known yet. The time of one with a request is zero.
type idleConns struct {
	mu    sync.Mutex
	since map[net.Conn]time.Time
}

// note is a http.Server's ConnState.
func (i *idleConns) note(conn net.Conn, state http.ConnState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, known := i.since[conn]
	switch {
	case state == http.StateNew, state == http.StateIdle && known:
		i.since[conn] = time.Now()
	case state == http.StateActive && known && conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != "h2":
		i.since[conn] = time.Time{}
	default:
		delete(i.since, conn)
	}
}

// recent reports whether one of them was opened, or had its last request, within
// [minIdle], or has a request now: the answer to that may have begun before the server
// stopped, without sending the client away.
func (i *idleConns) recent() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, since := range i.since {
		if since.IsZero() || time.Since(since) < minIdle {
			return true
		}
	}
	return false
}

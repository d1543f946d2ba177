package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// server is one call of Serve.
type server struct {
	handler     http.Handler
	http        *http.Server
	stopping    context.Context // has ended when nothing new should begin
	connections *connections
	bodies      *bodies
}

// Serve serves the handler over HTTPS on the listener until the context ends. It
// then goes on for a while (see [ShutdownDelay]), closes the listener, finishes the
// requests in flight (see [DrainTimeout]), and returns nil; a connection of HTTP/1.1 it
// closes when that has been idle for five seconds. An error means that it stopped by
// itself, that it had to cut requests off, or that an argument is nil or an option wrong.
//
// Clients cannot hold it up. They have ten seconds for the handshake, as long for
// the header of a request, which may have 16 KiB, a minute for the body, and another
// one for the answer. A connection without a request is closed after three minutes;
// the API server closes it before that, so that no request is sent on a connection
// that is being closed. See also [MaxConnections] and [MaxBodyBytes].
//
// The handler's requests carry the logger of ctx, but live on when ctx ends. What
// their ResponseWriter can do beyond [http.Flusher] is to be had from an
// [http.ResponseController]. The listener is closed in any case.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certs Certificates, opts ...Option) error {
	set, err := apply(opts)
	faults := append([]error{err}, set.tlsFaults(certs)...)
	if h == nil {
		faults = append(faults, errors.New("webhook: the handler is nil: give one, such as a http.ServeMux"))
	}
	if l == nil {
		return errors.Join(append(faults, errors.New("webhook: the listener is nil: give what net.Listen returned, and look at the error of that"))...)
	}
	if err := errors.Join(faults...); err != nil {
		return errors.Join(err, l.Close())
	}
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	s := newServer(ctx, stopping, h, set.tlsConfig(certs), set)

	// What runs beside it lives until the last request has been answered.
	beside, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	broken := make(chan struct{})
	for _, run := range set.companions {
		running.Go(func() {
			err := run(beside)
			if err == nil || beside.Err() != nil && errors.Is(err, context.Canceled) {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failed = append(failed, err); len(failed) == 1 {
				close(broken)
			}
		})
	}

	stopped := make(chan error, 1)
	go func() { stopped <- s.http.ServeTLS(listener{l}, "", "") }()
	select {
	case err = <-stopped:
	case <-broken:
	case <-ctx.Done():
		select {
		case err = <-stopped:
		case <-broken:
		case <-time.After(set.delay):
		}
	}
	stop()
	_ = l.Close() // here rather than in Shutdown, which also closes connections
	if err != nil {
		err = fmt.Errorf("webhook: %w", err)
	} else {
		<-stopped
	}
	err = errors.Join(err, s.drained(context.WithoutCancel(ctx), set.drain))
	done()
	running.Wait()
	return errors.Join(append([]error{err}, failed...)...)
}

func newServer(ctx, stopping context.Context, h http.Handler, config *tls.Config, set settings) *server {
	s := &server{
		handler:     h,
		stopping:    stopping,
		connections: &connections{max: set.maxConnections, maxBytes: set.maxBodyBytes},
		bodies:      newBodies(set.maxBodyBytes),
	}
	base := context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, stopping)
	s.http = &http.Server{
		Handler:           s,
		TLSConfig:         config,
		ReadHeaderTimeout: 10 * time.Second, // of the handshake too
		ReadTimeout:       time.Minute,
		// From the header on. The API server waits 30 seconds at most, for all of it; but
		// a client that does not read its answer holds the memory of that.
		WriteTimeout: 2 * time.Minute,
		// More than the API server's 90 seconds (apimachinery/pkg/util/net/http.go).
		IdleTimeout: 3 * time.Minute,
		// A token, the trace, and what a proxy adds.
		MaxHeaderBytes: 16 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, // RFC 9113, section 6.5.2, recommends no less
			// The memory for a frame is taken when its length is read, of 1 MiB by default.
			MaxReadFrameSize: 16 << 10,
			// What a client may send that the handler has not read yet.
			MaxReceiveBufferPerConnection: 256 << 10,
			MaxReceiveBufferPerStream:     256 << 10,
			// Nobody else would notice that the client's machine has gone.
			SendPingTimeout: 30 * time.Second,
			PingTimeout:     15 * time.Second,
			// A client that reads nothing.
			WriteByteTimeout: 30 * time.Second,
		},
		ConnContext: s.connections.add,
		ConnState:   s.connections.state,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    log.New(&errorLog{logger: klog.FromContext(ctx)}, "", 0),
	}
	return s
}

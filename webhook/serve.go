package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
)

// Serve serves the handler over HTTPS on the listener until the context is done. Then it shuts
// down and returns nil:
//
//  1. It continues to serve for [ShutdownDelay].
//  2. It closes the listener.
//  3. It waits for requests in flight, at most for [DrainTimeout]. It closes HTTP/1.1
//     connections after they have been idle for five seconds.
//
// Serve returns an error if it stopped for another reason than its context, or had to cut off
// requests. It always closes the listener.
//
// Clients have these limits:
//
//   - two minutes for the TLS handshake
//   - two minutes for a request, with a header of at most 16 KiB
//   - two minutes from the header to the end of the response
//   - three minutes for an idle connection
//
// The API server closes idle and unused connections after 90 seconds, so it sends no request on a
// connection that the server is closing.
//
// The contexts of requests have the values of ctx, including the logger, but are not done when
// ctx is done. Use an [http.ResponseController] for optional features of the ResponseWriter.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certs Certificates, opts ...Option) error {
	set := apply(opts)
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	s := newServer(ctx, stopping, h, set.tlsConfig(certs))

	// The companions run until the last request has been answered.
	besideCtx, endBeside := context.WithCancel(context.WithoutCancel(ctx))
	defer endBeside()
	beside, failing := errgroup.WithContext(besideCtx)
	for _, run := range set.companions {
		beside.Go(func() error {
			err := run(besideCtx)
			if besideCtx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		})
	}

	var err error
	stopped := make(chan error, 1)
	go func() { stopped <- s.http.ServeTLS(l, "", "") }()
	select {
	case err = <-stopped:
	case <-failing.Done():
	case <-ctx.Done():
		select {
		case err = <-stopped:
		case <-failing.Done():
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
	err = errors.Join(err, s.drain(context.WithoutCancel(ctx), set.drain))
	endBeside()
	return errors.Join(err, beside.Wait())
}

// server is one call of Serve.
type server struct {
	http     *http.Server
	handler  http.Handler
	stopping context.Context // is done when the server stops
	idle     idleConns
	inFlight atomic.Int64 // requests
}

func newServer(ctx, stopping context.Context, h http.Handler, config *tls.Config) *server {
	s := &server{
		handler:  h,
		stopping: stopping,
		idle:     idleConns{conns: map[net.Conn]idleConn{}},
	}
	base := context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, stopping)
	s.http = &http.Server{
		Handler:   s,
		TLSConfig: config,
		// Also of the handshake. In HTTP/1.1, net/http counts it for the first request from the
		// handshake on, but clients also keep connections that they have not used yet.
		ReadTimeout: 2 * time.Minute,
		// From the header on. The API server waits at most 30 seconds in total, but a client
		// that does not read its response holds memory.
		WriteTimeout: 2 * time.Minute,
		// More than the API server's 90 seconds (apimachinery/pkg/util/net/http.go).
		IdleTimeout: 3 * time.Minute,
		// A token, the trace, and what a proxy adds.
		MaxHeaderBytes: 16 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, // RFC 9113, section 6.5.2, recommends no less
			// Memory for a frame, 1 MiB by default, is allocated when its length is read.
			MaxReadFrameSize: 16 << 10,
			// Bytes that a client may send before the handler reads them.
			MaxReceiveBufferPerConnection: 256 << 10,
			WriteByteTimeout:              30 * time.Second, // for a client that reads nothing
		},
		ConnState:   s.idle.note,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    log.New(errorLog{klog.FromContext(ctx)}, "", 0),
	}
	return s
}

// ServeHTTP serves one request.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	a := &responseWriter{ResponseWriter: w, stopping: s.stopping}
	s.handler.ServeHTTP(a, r)
	a.begin() // for a handler that wrote nothing
}

// errorLog logs a panic of a handler as an error, and faults of clients at verbosity 2. It
// checks the beginning of messages of net/http, because clients can influence only what
// follows.
type errorLog struct{ logger logr.Logger }

func (l errorLog) Write(p []byte) (int, error) {
	message := string(bytes.TrimSpace(p))
	if bytes.HasPrefix(p, []byte("http: panic serving ")) || bytes.HasPrefix(p, []byte("http2: panic serving ")) {
		stack := max(0, strings.LastIndex(message, "\ngoroutine "))
		l.logger.Error(logtext.Error(errors.New(message[:stack])), "Webhook server", "stack", message[stack:])
	} else {
		l.logger.V(2).Info("Webhook server", "message", logtext.Text(message))
	}
	return len(p), nil
}

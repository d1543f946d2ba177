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
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

// Serve serves the handler over HTTPS on the listener until the context ends. It
// then serves for [ShutdownDelay], closes the listener, finishes the requests in flight
// within [DrainTimeout], closes connections of HTTP/1.1 once they have been idle for five
// seconds, and returns nil. An error means that it stopped by itself, or that it had to cut
// requests off.
//
// Clients have ten seconds for the handshake, as long for the header of a request, which
// may have 16 KiB, a minute for the body, and two for all of it with the answer. A
// connection without a request is closed after three minutes; the API server closes it
// before that, so that no request is sent on a connection that is being closed.
//
// The handler's requests carry the logger of ctx, but live on when ctx ends. What
// their ResponseWriter can do beyond that interface is to be had from an
// [http.ResponseController]. The listener is closed in any case.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certs Certificates, opts ...Option) error {
	set := apply(opts)
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	s := newServer(ctx, stopping, h, set.tlsConfig(certs), set.maxBodyBytes)

	// Functions beside it run until the last request has been answered.
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
	stopping context.Context // has ended when nothing new should begin
	memory   memory
	idle     idleConns
	inFlight atomic.Int64 // requests
}

func newServer(ctx, stopping context.Context, h http.Handler, config *tls.Config, maxBodyBytes int64) *server {
	s := &server{
		handler:  h,
		stopping: stopping,
		memory:   memory{max: maxBodyBytes},
		idle:     idleConns{since: map[net.Conn]time.Time{}},
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
			// Bytes that a client may send and the handler has not read yet.
			MaxReceiveBufferPerConnection: 256 << 10,
			WriteByteTimeout:              30 * time.Second, // for a client that reads nothing
		},
		ConnState:   s.idle.note,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    log.New(errorLog{klog.FromContext(ctx)}, "", 0),
	}
	return s
}

// ServeHTTP serves a request of the handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	a := &answer{ResponseWriter: w, stopping: s.stopping}
	if r.Body != http.NoBody {
		a.body = &body{ReadCloser: r.Body, memory: &s.memory}
		defer a.body.end()
		counted := *r // net/http looks at the body of its own request
		counted.Body = a.body
		r = &counted
	}
	s.handler.ServeHTTP(a, r)
	a.begin() // for a handler that wrote nothing
}

// errorLog logs a panic of a handler as an error, and what clients did wrong at verbosity
// 2. It goes by how messages of net/http begin: what a client chooses comes later in them.
type errorLog struct{ logger logr.Logger }

func (l errorLog) Write(p []byte) (int, error) {
	message := string(bytes.TrimSpace(p))
	if bytes.HasPrefix(p, []byte("http: panic serving ")) || bytes.HasPrefix(p, []byte("http2: panic serving ")) {
		l.logger.Error(errors.New(message), "Webhook server")
	} else {
		l.logger.V(2).Info("Webhook server", "message", message)
	}
	return len(p), nil
}

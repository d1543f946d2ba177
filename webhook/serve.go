package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Option changes how Serve works.
type Option func(*settings)

type settings struct {
	drain time.Duration
}

// DrainTimeout is how long requests in flight may take after the context has
// ended; what takes longer is cut off. The default is 30 seconds, the longest
// that the API server waits for a webhook.
func DrainTimeout(d time.Duration) Option {
	return func(s *settings) { s.drain = d }
}

// TLSConfig returns the configuration with which Serve listens: TLS 1.3, HTTP/2
// and HTTP/1.1, and a certificate that may change at each handshake.
func TLSConfig(certs Certificates) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: certs.GetCertificate,
	}
}

// Serve serves the handler over HTTPS on the listener until the context ends. It
// then closes the listener, finishes the requests in flight (see [DrainTimeout]),
// and returns nil. An error means that it stopped by itself, or had to cut
// requests off. Slow clients are limited: ten seconds for the header, a minute
// for the body.
//
// The handler's requests carry the logger of ctx, but live on when ctx ends. The
// listener is closed in any case.
func Serve(ctx context.Context, l net.Listener, h http.Handler, certs Certificates, opts ...Option) error {
	set := settings{drain: 30 * time.Second}
	for _, opt := range opts {
		opt(&set)
	}
	logger := klog.FromContext(ctx)
	server := &http.Server{
		Handler:           h,
		TLSConfig:         TLSConfig(certs),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       3 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		// A failed handshake is the client's affair, and there may be many.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(logger.V(2)), slog.LevelInfo),
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.ServeTLS(l, "", "") }()
	select {
	case err := <-stopped:
		return fmt.Errorf("webhook: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), set.drain)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("webhook: requests still in flight after %s were cut off: %w", set.drain, errors.Join(err, server.Close()))
	}
	return nil
}

package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// A request takes half as much CPU time with HTTP/1.1 as with HTTP/2. But a Go client keeps a
// limited number of idle connections. With more requests at a time, it would open connections
// all the time, and a handshake takes as much as 20 requests. So if a client offers both
// protocols, connections speak HTTP/1.1, unless clients open too many of them: then a new
// connection speaks HTTP/2, and Go's client uses it instead of opening others.
//
// The API server keeps 25 idle connections (client-go/transport/cache.go). It offers HTTP/2 only
// to a webhook with a URL of the local host (k8s.io/apiserver/pkg/util/webhook/client.go).
const (
	http1Burst = 50
	http1Rate  = rate.Limit(1) // connections a second

	// After this time, a connection with HTTP/2 is closed when the server has few requests. The
	// client opens another one, which may speak HTTP/1.1.
	http2Age  = 90 * time.Second
	http2Idle = 4 // requests at a time
)

// preferHTTP1 lets a configuration choose the protocol of each connection.
func preferHTTP1(config *tls.Config) {
	http1 := config.Clone()
	http1.NextProtos = []string{"http/1.1"}
	connections := rate.NewLimiter(http1Rate, http1Burst)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		either := slices.Contains(hello.SupportedProtos, "http/1.1") && slices.Contains(hello.SupportedProtos, "h2")
		if either && connections.Allow() {
			return http1, nil
		}
		return nil, nil // the configuration itself
	}
}

type openedKey struct{}

// withOpened is the ConnContext function of the http.Server.
func withOpened(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, openedKey{}, time.Now())
}

// isOutdated reports whether a client should open another connection.
func (s *server) isOutdated(r *http.Request) bool {
	if r.ProtoMajor != 2 || s.inFlight.Load() > http2Idle {
		return false
	}
	opened, _ := r.Context().Value(openedKey{}).(time.Time)
	return time.Since(opened) > http2Age
}

package webhook_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/webhook"
)

// An API server offers both protocols to webhooks on the local host.
func eitherClient(t *testing.T, s *site) *http.Client {
	transport := &http.Transport{TLSClientConfig: s.config(), ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 25}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Few requests at a time use HTTP/1.1.
func TestProtocol_FewRequests(t *testing.T) {
	t.Parallel()
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	client := eitherClient(t, s)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 100 {
				if _, proto, err := post(client, s.url(), nil); proto != "HTTP/1.1" || err != nil {
					t.Errorf("the protocol is %q, error %v", proto, err)
					return
				}
			}
		})
	}
	clients.Wait()
}

// Many requests at a time share one connection. No request fails when a client changes to it.
func TestProtocol_ManyRequests(t *testing.T) {
	t.Parallel()
	var http2 atomic.Int64
	s := start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		http2.Add(int64(r.ProtoMajor - 1))
		time.Sleep(10 * time.Millisecond)
	}))
	client := eitherClient(t, s)
	const all, each = 200, 30
	var clients sync.WaitGroup
	for range all {
		clients.Go(func() {
			for range each {
				if code, answer, err := post(client, s.url(), nil); code != http.StatusOK || err != nil {
					t.Errorf("got %d %s, error %v", code, answer, err)
				}
			}
		})
	}
	clients.Wait()
	if n := http2.Load(); n < all*each/2 {
		t.Errorf("%d of %d requests used HTTP/2, want most", n, all*each)
	}
}

// A client that offers HTTP/2 alone gets it.
func TestProtocol_HTTP2Alone(t *testing.T) {
	t.Parallel()
	s := start(t, echo)
	if got := s.dial(t, "h2").ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Errorf("the protocol is %q, want h2", got)
	}
}

// A client that offers HTTP/1.1 alone, as the API server does, leaves the choice for others.
func TestProtocol_HTTP1Alone(t *testing.T) {
	t.Parallel()
	s := start(t, echo)
	for range 80 {
		s.dial(t, "http/1.1").Close()
	}
	if got := s.dial(t, "h2", "http/1.1").ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the protocol is %q, want http/1.1", got)
	}
}

// afterMany calls test with a client that offers both protocols, after many connections were
// opened. The handler answers with the protocol, and for /slow after 100 seconds.
func afterMany(t *testing.T, test func(t *testing.T, client *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		ca := newAuthority(t, "x")
		listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done, certs := make(chan error), ca.serving(t)
		go func() {
			done <- webhook.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					time.Sleep(100 * time.Second)
				}
				fmt.Fprint(w, r.Proto)
			}), certs)
		}()
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			listener.conns <- server
			return client, nil
		}
		for range 100 { // so many connections are too many
			conn, err := dial(ctx, "", "")
			check(t, err)
			check(t, tls.Client(conn, &tls.Config{RootCAs: ca.pool, ServerName: "localhost", NextProtos: []string{"http/1.1", "h2"}}).Handshake())
			conn.Close()
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool, ServerName: "localhost"}, ForceAttemptHTTP2: true, DialContext: dial}
		test(t, &http.Client{Transport: transport})
		transport.CloseIdleConnections()
		cancel()
		check(t, <-done)
	})
}

// A connection with HTTP/2 that has become quiet makes room for one with HTTP/1.1.
func TestProtocol_AfterManyRequests(t *testing.T) {
	afterMany(t, func(t *testing.T, client *http.Client) {
		var minutes []string
		for range 5 {
			_, proto, err := post(client, "https://localhost", []byte("x"))
			check(t, err)
			minutes = append(minutes, proto)
			time.Sleep(time.Minute)
		}
		// The answer after two minutes is the last one over HTTP/2.
		if diff := cmp.Diff([]string{"HTTP/2.0", "HTTP/2.0", "HTTP/2.0", "HTTP/1.1", "HTTP/1.1"}, minutes); diff != "" {
			t.Errorf("by minute (-want +got):\n%s", diff)
		}
	})
}

// A connection with HTTP/2 stays while the server has many requests.
func TestProtocol_WithManyRequests(t *testing.T) {
	afterMany(t, func(t *testing.T, client *http.Client) {
		var slow sync.WaitGroup
		for range 5 {
			slow.Go(func() {
				if _, _, err := post(client, "https://localhost/slow", []byte("x")); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(95 * time.Second)
		for range 2 {
			_, proto, err := post(client, "https://localhost", []byte("x"))
			check(t, err)
			if proto != "HTTP/2.0" {
				t.Errorf("the protocol is %s", proto)
			}
			time.Sleep(time.Second) // a client that is told to close does so
		}
		slow.Wait()
	})
}

// Package webhooktest serves a webhook to the API server of a test.
package webhooktest

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
)

// Serve serves a handler on loopback, until the test ends. It returns the URL of the
// root, and the CA bundle that the API server needs to trust it.
func Serve(t testing.TB, h http.Handler) (url string, caBundle []byte) {
	t.Helper()
	caBundle, chain, key := SelfSigned(t, "127.0.0.1")
	certs := Files(t, chain, key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- webhook.Serve(ctx, listener, h, certs, webhook.DrainTimeout(10*time.Second)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "https://" + listener.Addr().String(), caBundle
}

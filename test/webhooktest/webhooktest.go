// Package webhooktest serves a webhook to the API server of a test.
package webhooktest

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook"
)

// Serve serves a handler on loopback, until the test ends. It returns the URL of the
// root, and the CA bundle that the API server needs to trust it.
func Serve(t testing.TB, h http.Handler) (url string, caBundle []byte) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, caBundle = pem.Decode(chain) // behind the leaf
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(certFile, chain, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	certs, err := webhook.Files(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook"
)

// A webhook and its health on one port, until the context ends.
func ExampleServe() {
	certFile, keyFile, ca := certificate()
	certs, err := webhook.Files(certFile, keyFile)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/convert", http.NotFoundHandler()) // conversion.NewHandler(reg)
	mux.Handle("/healthz", webhook.Checks{})
	mux.Handle("/readyz", webhook.Checks{"certificate": func(*http.Request) error { return certs.Check() }})
	listener, err := net.Listen("tcp", "127.0.0.1:0") // ":8443" in a pod
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- webhook.Serve(ctx, listener, mux, certs) }()

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca}}}
	resp, err := client.Get("https://" + listener.Addr().String() + "/readyz?verbose")
	if err != nil {
		panic(err)
	}
	body, _ := io.ReadAll(resp.Body)
	fmt.Print(string(body))
	client.CloseIdleConnections()
	cancel()
	fmt.Println(<-served)
	// Output:
	// [+]certificate ok
	// <nil>
}

// certificate writes a certificate for 127.0.0.1, and returns who trusts it.
func certificate() (certFile, keyFile string, ca *x509.CertPool) {
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "webhook")
	if err != nil {
		panic(err)
	}
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := os.WriteFile(certFile, chain, 0o600); err != nil {
		panic(err)
	}
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		panic(err)
	}
	_, rest := pem.Decode(chain)
	ca = x509.NewCertPool()
	ca.AppendCertsFromPEM(rest)
	return certFile, keyFile, ca
}

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
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook"
)

// A webhook and its health endpoint are served on one port until the context is done.
func ExampleServe() {
	certFile, keyFile, ca := certificate()
	certs, err := webhook.Files(certFile, keyFile)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/convert", http.NotFoundHandler()) // conversion.NewHandler(reg)
	mux.Handle("/healthz", webhook.Checks{})
	mux.Handle("/readyz", webhook.Checks{"certificate": certs.Ready})
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

// A pod stops without losing a request. The informer runs until the last request is answered.
func ExampleRunAlongside() {
	certFile, keyFile, _ := certificate()
	certs, err := webhook.Files(certFile, keyFile)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/readyz", webhook.Checks{"shutdown": webhook.ShutdownCheck})
	ctx, cancel := context.WithCancel(context.Background())
	informer := func(ctx context.Context) error { // informer.RunWithContext
		fmt.Println("the informer runs")
		cancel() // as a signal would
		<-ctx.Done()
		fmt.Println("the informer has ended")
		return nil
	}
	err = webhook.Serve(ctx, listener, mux, certs,
		webhook.ShutdownDelay(100*time.Millisecond), // 10 seconds in a pod
		webhook.RunAlongside(informer))
	fmt.Println(err)
	// Output:
	// the informer runs
	// the informer has ended
	// <nil>
}

// The admission webhook requires a client certificate of the CA. Probes have no certificate.
func ExampleClientsOf() {
	certFile, keyFile, ca := certificate()
	certs, err := webhook.Files(certFile, keyFile)
	if err != nil {
		panic(err)
	}
	clients, err := webhook.ClientsOf(certFile, "kube-apiserver") // a CA is behind the certificate
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/validate", clients.Only(http.NotFoundHandler())) // admission.NewHandler(s, …)
	mux.Handle("/readyz", webhook.Checks{"clients": clients.Ready})
	listener, err := tls.Listen("tcp", "127.0.0.1:0", webhook.TLSConfig(certs, webhook.VerifyClients(clients)))
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca}}}
	for _, path := range []string{"/readyz", "/validate"} {
		resp, err := client.Get("https://" + listener.Addr().String() + path)
		if err != nil {
			panic(err)
		}
		fmt.Println(path, resp.Status)
		resp.Body.Close()
	}
	// Output:
	// /readyz 200 OK
	// /validate 401 Unauthorized
}

// certificate writes a certificate for 127.0.0.1, and returns a pool that trusts it.
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

package webhook_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/crdkit/crdkit/webhook"
)

// A server with a webhook and its health on one port.
func ExampleServe() {
	serve := func(ctx context.Context) error {
		certs, err := webhook.Files("tls.crt", "tls.key")
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("/convert", http.NotFoundHandler()) // conversion.NewHandler(reg)
		mux.Handle("/healthz", webhook.Checks{})
		mux.Handle("/readyz", webhook.Checks{"certificate": func(*http.Request) error { return certs.Check() }})
		listener, err := net.Listen("tcp", ":8443")
		if err != nil {
			return err
		}
		return webhook.Serve(ctx, listener, mux, certs, webhook.DrainTimeout(10*time.Second))
	}
	fmt.Println(serve(context.Background()))
	// Output: webhook: certificate: open tls.crt: no such file or directory
}

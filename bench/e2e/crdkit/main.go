// Command crdkit serves the pizza webhooks of the end-to-end benchmark with crdkit.
package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	e2e "github.com/crdkit/crdkit/bench/e2e/pizza"
	"github.com/crdkit/crdkit/bench/minimal/pizza"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, dir, address string) error {
	s, err := pizza.Scheme()
	if err != nil {
		return err
	}
	registry := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(registry, pizza.ToHub, pizza.FromHub); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/convert", conversion.NewHandler(registry))
	mux.Handle("/mutate", admission.NewHandler(s, admission.Mutate(e2e.Default)))
	mux.Handle("/validate", admission.NewHandler(s, admission.Validate(e2e.Validate)))
	mux.HandleFunc("/usage", e2e.ServeUsage)
	certs, err := webhook.Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return webhook.Serve(ctx, listener, mux, certs)
}

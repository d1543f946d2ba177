// Command files is a minimal conversion webhook with crdkit. It serves a certificate from
// files.
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"

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
	certs, err := webhook.Files(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return webhook.Serve(ctx, listener, conversion.NewHandler(registry), certs)
}

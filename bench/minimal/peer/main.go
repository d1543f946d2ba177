// Command peer is a minimal conversion webhook with controller-runtime. It runs the webhook server
// of controller-runtime without a manager, and serves a certificate from files.
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/crdkit/crdkit/bench/minimal/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
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
	converter, err := conversion.NewHubSpokeConverter(&v1beta1.Pizza{}, conversion.NewSpokeConverter(&v1alpha1.Pizza{}, pizza.FromHub, pizza.ToHub))(s)
	if err != nil {
		return err
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(v1beta1.GroupVersion.WithKind("Pizza").GroupKind(), converter); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: host, Port: n, CertDir: dir})
	server.Register("/convert", conversion.NewWebhookHandler(s, registry))
	return server.Start(ctx)
}

// Command managed is a minimal conversion webhook that issues its own certificates, and registers
// its CA with the API server.
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/bench/minimal/pizza"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, definition, address string) error {
	s, err := pizza.Scheme()
	if err != nil {
		return err
	}
	registry := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(registry, pizza.ToHub, pizza.FromHub); err != nil {
		return err
	}
	text, err := os.ReadFile(definition)
	if err != nil {
		return err
	}
	hooks, err := registration.New("pizza-operator",
		registration.Service("pizza-system", "pizza-operator"),
		registration.CRDs(text),
		registration.Conversion("/convert", conversion.NewHandler(registry)),
	)
	if err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return replica.Run(ctx, config, listener, hooks)
}

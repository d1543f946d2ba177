// Command controllerruntime serves the pizza webhooks of the end-to-end benchmark with the webhook
// server of controller-runtime, as it is by default, without a manager.
package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	e2e "github.com/crdkit/crdkit/bench/e2e/pizza"
	"github.com/crdkit/crdkit/bench/minimal/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

type defaulter struct{}

func (defaulter) Default(ctx context.Context, p *v1beta1.Pizza) error { return e2e.Default(ctx, p) }

type validator struct{}

func (validator) ValidateCreate(ctx context.Context, p *v1beta1.Pizza) (admission.Warnings, error) {
	errs, err := e2e.Validate(ctx, p)
	if err == nil {
		err = errs.ToAggregate()
	}
	return nil, err
}

func (v validator) ValidateUpdate(ctx context.Context, _, p *v1beta1.Pizza) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, p)
}

func (validator) ValidateDelete(context.Context, *v1beta1.Pizza) (admission.Warnings, error) {
	return nil, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard())
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
	server.Register("/mutate", admission.WithDefaulter(s, defaulter{}))
	server.Register("/validate", admission.WithValidator(s, validator{}))
	server.Register("/usage", http.HandlerFunc(e2e.ServeUsage))
	return server.Start(ctx)
}

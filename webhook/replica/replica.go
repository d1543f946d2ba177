package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/authority"
	"github.com/crdkit/crdkit/webhook/registration"
)

// replica is one call of Run.
type replica struct {
	hooks       *registration.Webhooks
	certs       webhook.Certificates
	bundle      registration.Bundle
	authority   []authority.Option
	secret      string
	server      []webhook.Option
	handlers    []handler
	checks      webhook.Checks
	informers   []*informer
	controllers []func(context.Context) error

	unconverted *unconverted
	registered  atomic.Bool
	ready       atomic.Bool
}

type handler struct {
	pattern string
	http.Handler
}

// pace is how often a step looks whether the one before is done.
const pace = 50 * time.Millisecond

// Run runs a replica until the context ends: see the package documentation for the order.
// It serves the webhooks on the listener, and /healthz and /readyz. The API server of the
// configuration is told about them. Then it returns nil.
//
// An error means that the options are wrong, that the replica could not be started, or that a
// part of it stopped by itself. The listener is closed in any case.
func Run(ctx context.Context, config *rest.Config, l net.Listener, hooks *registration.Webhooks, opts ...Option) error {
	r := &replica{
		hooks:  hooks,
		secret: hooks.Name() + "-webhook",
		server: []webhook.Option{webhook.ShutdownDelay(5 * time.Second)},
		checks: webhook.Checks{},
	}
	for _, opt := range opts {
		opt(r)
	}
	issuing, err := r.prepare(config)
	if err != nil {
		return errors.Join(fmt.Errorf("replica: %w", err), l.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	var controlling sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for _, control := range r.controllers {
		controlling.Go(func() {
			if !await(ctx, r.ready.Load) {
				return
			}
			if err := control(ctx); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("replica: a controller stopped: %w", err))
				stop()
			}
		})
	}
	err = webhook.Serve(ctx, l, r.handler(), r.certs, append(r.server,
		webhook.While(issuing),
		webhook.While(func(ctx context.Context) error { return r.hooks.Reconcile(ctx, config, r.bundle) }),
		webhook.While(r.inform),
	)...)
	stop()
	controlling.Wait()
	return errors.Join(append([]error{err}, failed...)...)
}

// prepare finds the mistakes, and the certificates. issuing looks after these.
func (r *replica) prepare(config *rest.Config) (issuing func(context.Context) error, err error) {
	issuing = func(context.Context) error { return nil }
	if r.certs == nil {
		a, err := authority.New(config, r.hooks.Namespace(), r.secret, r.hooks.Hosts(), append([]authority.Option{authority.CarriedBy(r.hooks.Carry)}, r.authority...)...)
		if err != nil {
			return nil, err
		}
		r.certs, r.bundle = a, a
	}
	if c, ok := r.certs.(interface{ Run(context.Context) error }); ok {
		issuing = c.Run
	}
	switch c := r.certs.(type) {
	case interface{ Check(*http.Request) error }:
		r.checks["certificate"] = c.Check
	case interface{ Check() error }:
		r.checks["certificate"] = func(*http.Request) error { return c.Check() }
	}
	if b, ok := r.bundle.(interface{ Check() error }); ok {
		r.checks["ca-bundle"] = func(*http.Request) error { return b.Check() }
	}
	if r.unconverted, err = newUnconverted(config); err != nil {
		return nil, err
	}
	for _, i := range r.informers {
		r.checks["informer-"+i.name] = i.check(r.unconverted.lacks.Load)
	}
	r.checks["registration"] = r.checkRegistration
	r.checks["shutdown"] = webhook.Draining
	return issuing, nil
}

// checkRegistration passes once the registration has been right.
func (r *replica) checkRegistration(req *http.Request) error {
	if r.registered.Load() {
		return nil
	}
	return r.hooks.Check(req)
}

// inform runs the informers, when the API server has been told of the webhooks, until
// ctx ends.
func (r *replica) inform(ctx context.Context) error {
	if !await(ctx, func() bool { return r.hooks.Check(nil) == nil }) {
		return nil
	}
	r.registered.Store(true)
	var running sync.WaitGroup
	for _, i := range r.informers {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	defer running.Wait()
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	running.Go(func() { r.unconverted.watch(asking, r.hooks.Converted()) })
	for _, i := range r.informers {
		if !await(ctx, i.HasSynced) {
			return nil
		}
	}
	stopAsking()
	klog.FromContext(ctx).V(1).Info("The replica is ready", "webhooks", r.hooks.Name())
	r.ready.Store(true)
	return nil
}

// handler serves everything on one port.
func (r *replica) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", webhook.Checks{})
	mux.Handle("/readyz", r.checks)
	for _, h := range r.handlers {
		mux.Handle(h.pattern, h)
	}
	mux.Handle("/", r.hooks)
	return mux
}

// await returns true when the condition holds, or false when the context ends.
func await(ctx context.Context, condition func() bool) bool {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

package pizza

import (
	"context"
	"errors"
	"net"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/webhook/replica"
)

// workers is the number of pizzas that the controller reconciles at a time.
const workers = 2

// Option changes how Run runs the operator.
type Option func(*settings)

type settings struct {
	lease   *Lease
	replica []replica.Option
}

// LeaderElection runs the controller only while this replica holds the lease, instead of always.
// All replicas serve the webhooks.
func LeaderElection(lease Lease) Option {
	return func(s *settings) { s.lease = &lease }
}

// Replica adds options of package [replica], for example for the certificates.
func Replica(opts ...replica.Option) Option {
	return func(s *settings) { s.replica = append(s.replica, opts...) }
}

// Run runs the webhooks and the controller until the context is done, and always closes the
// listener. It issues the certificates of the webhooks, and writes the CA into their registrations,
// once the [Manifests] of the same endpoint have been applied. Package [replica] describes the
// order in which all parts start and stop.
func Run(ctx context.Context, config *rest.Config, listener net.Listener, endpoint Endpoint, opts ...Option) error {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	op, err := newOperator(config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	hooks, err := op.declare(endpoint)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	work := op.work
	if set.lease != nil {
		leadership, err := newLeadership(config, *set.lease)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		work = func(ctx context.Context) { leadership.run(ctx, op.work) }
	}
	return replica.Run(ctx, config, listener, hooks, append([]replica.Option{
		replica.Informer("pizzas", op.pizzas),
		replica.Informer("toppings", op.toppings),
		replica.Controller(func(ctx context.Context) error { work(ctx); return nil }),
		replica.Handle("/metrics", op.metrics.handler()),
		replica.Metrics(op.metrics.replica),
	}, set.replica...)...)
}

// operator has the parts of the webhooks and the controller, none of which runs yet.
type operator struct {
	*Menu
	registry   *conversion.Registry
	metrics    *metrics
	controller *controller
}

func newOperator(config *rest.Config) (*operator, error) {
	s, err := NewScheme()
	if err != nil {
		return nil, err
	}
	registry, err := NewRegistry(s)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics()
	if err != nil {
		return nil, err
	}
	menu, err := NewMenu(config, s)
	if err != nil {
		return nil, err
	}
	return &operator{menu, registry, metrics, &controller{clients: menu.clients, pizzas: menu.pizzas, toppings: menu.toppings, pizzasOf: menu.pizzasOf}}, nil
}

// work reconciles the pizzas until the context is done.
func (op *operator) work(ctx context.Context) {
	op.metrics.leading.Set(1)
	defer op.metrics.leading.Set(0)
	op.controller.run(ctx, workers)
}

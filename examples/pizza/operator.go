package pizza

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/webhook"
)

// workers is how many pizzas the controller looks after at a time.
const workers = 2

// Option changes how Run runs the operator.
type Option func(*settings)

type settings struct {
	lease *Lease
}

// LeaderElection has the controller work only while this replica holds the lease. All
// replicas serve the webhooks. Without it the controller always works.
func LeaderElection(lease Lease) Option {
	return func(s *settings) { s.lease = &lease }
}

// Run runs the operator, webhooks and controller, until the context ends. It
// then finishes the requests in flight. The listener is closed in any case.
//
// The webhooks are served before the informers have synced: the API server needs
// the conversion to list the very pizzas that the informers wait for. /readyz waits for
// the informers, but not for ever, so that a Service in front of the operator need not
// publish addresses that are not ready: see readiness.go.
func Run(ctx context.Context, config *rest.Config, listener net.Listener, certs webhook.Certificates, opts ...Option) error {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	op, err := newOperator(config)
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The requests in flight need the informers: these stop when all are answered.
	informing, stopInformers := context.WithCancel(context.WithoutCancel(ctx))
	var informers sync.WaitGroup
	informers.Go(func() { op.pizzas.RunWithContext(informing) })
	informers.Go(func() { op.toppings.RunWithContext(informing) })
	defer informers.Wait()
	defer stopInformers()
	stopped := make(chan error, 1)
	go func() {
		defer cancel()
		stopped <- webhook.Serve(ctx, listener, op.handler(certs), certs)
	}()
	if cache.WaitForCacheSync(ctx.Done(), op.pizzasOf.HasSynced, op.known.HasSynced) {
		klog.FromContext(ctx).Info("The operator is ready", "address", listener.Addr())
		work(ctx)
	}
	return <-stopped
}

type operator struct {
	metrics          *metrics
	webhooks         map[string]http.Handler // by path
	pizzas, toppings cache.SharedIndexInformer
	known            *reference.Target
	pizzasOf         *reference.Referrers
	controller       *controller
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
	clients, err := newClients(config, s)
	if err != nil {
		return nil, err
	}
	pizzas := newInformer(clients.Pizzas(""), &v1beta1.Pizza{})
	toppings := newInformer(clients.Toppings(), &v1alpha1.Topping{})
	pizzasOf, err := reference.NewReferrers(pizzaResource, pizzas, reference.ClusterScoped(toppingResource), toppingsOf)
	if err != nil {
		return nil, err
	}
	known, err := reference.NewTarget(reference.ClusterScoped(toppingResource), toppings, func(ctx context.Context, _, name string) error {
		_, err := clients.Toppings().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics()
	if err != nil {
		return nil, err
	}
	op := &operator{
		metrics:    metrics,
		webhooks:   map[string]http.Handler{},
		pizzas:     pizzas,
		toppings:   toppings,
		known:      known,
		pizzasOf:   pizzasOf,
		controller: &controller{clients: clients, pizzas: pizzas, toppings: toppings, pizzasOf: pizzasOf},
	}
	return op, op.addWebhooks(s, registry)
}

// addWebhooks makes the handlers. The webhooks have one path for each version of the
// reviews, although each path answers both: so the metrics tell which version the API
// server sends.
func (op *operator) addWebhooks(s *runtime.Scheme, registry *conversion.Registry) error {
	var errs []error
	admit := func(path, webhook string, opts ...admission.Option) {
		count, err := op.metrics.admission(path, webhook)
		if err != nil {
			errs = append(errs, err)
			return
		}
		op.webhooks[path] = admission.NewHandler(s, append(opts, count)...)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		count, err := op.metrics.conversion(convertPath(version))
		if err != nil {
			return err
		}
		op.webhooks[convertPath(version)] = conversion.NewHandler(registry, count)
		admit(admitPath(version), defaultPizzas, admission.ConvertWith(registry), admission.Mutate(defaultToppings))
		admit(validatePizzaPath(version), validatePizzas, admission.Validate(reference.Exists(op.known, toppingsOf)), admission.Validate(reference.Exists(op.known, toppingsOfAlpha)))
		admit(validateToppingPath(version), validateToppings, admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](op.pizzasOf)))
	}
	return errors.Join(errs...)
}

// work looks after the pizzas until the context ends.
func (op *operator) work(ctx context.Context) {
	op.metrics.leading.Set(1)
	defer op.metrics.leading.Set(0)
	op.controller.run(ctx, workers)
}

// handler serves everything on one port.
func (op *operator) handler(certs webhook.Certificates) http.Handler {
	mux := http.NewServeMux()
	for path, h := range op.webhooks {
		mux.Handle(path, h)
	}
	mux.Handle("/metrics", op.metrics.handler())
	mux.Handle("/healthz", webhook.Checks{})
	checks := webhook.Checks{
		"informer-pizzas":   unlessLate(op.pizzasOf.HasSynced, op.pizzasOf.Check),
		"informer-toppings": unlessLate(op.known.HasSynced, op.known.Check),
	}
	if c, ok := certs.(interface{ Check() error }); ok {
		checks["certificate"] = func(*http.Request) error { return c.Check() }
	}
	mux.Handle("/readyz", checks)
	return mux
}

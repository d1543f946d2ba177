package pizza

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Run runs the operator, webhooks and controller, until the context ends. It
// then finishes the requests in flight. The listener is closed in any case.
//
// The webhooks are served before the informers have synced: the API server needs
// the conversion to list the very pizzas that the informers wait for. For the same
// reason a Service in front of the operator must publish addresses that are not
// ready (publishNotReadyAddresses): /readyz waits for the informers.
func Run(ctx context.Context, config *rest.Config, listener net.Listener, certs webhook.Certificates) error {
	op, err := newOperator(config)
	if err != nil {
		return errors.Join(err, listener.Close())
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
		op.controller.run(ctx, workers)
	}
	return <-stopped
}

type operator struct {
	registry         *conversion.Registry
	admit            http.Handler
	validatePizza    http.Handler
	validateTopping  http.Handler
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
	controller, err := newController(clients, pizzas, toppings, pizzasOf)
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
	return &operator{
		registry:        registry,
		admit:           admission.NewHandler(s, admission.ConvertWith(registry), admission.Mutate(defaultToppings)),
		validatePizza:   admission.NewHandler(s, admission.Validate(reference.Exists(known, toppingsOf)), admission.Validate(reference.Exists(known, toppingsOfAlpha))),
		validateTopping: admission.NewHandler(s, admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](pizzasOf))),
		pizzas:          pizzas,
		toppings:        toppings,
		known:           known,
		pizzasOf:        pizzasOf,
		controller:      controller,
	}, nil
}

// handler serves everything on one port. The webhooks have one path for each
// version of the reviews, although each path answers both: so the metrics tell
// which version the API server sends.
func (op *operator) handler(certs webhook.Certificates) http.Handler {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "pizza_webhook_request_duration_seconds",
		Help:    "How long the webhooks took to answer, by path and HTTP status code.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
	}, []string{"path", "code"})
	metrics.MustRegister(requests)

	mux := http.NewServeMux()
	for _, version := range []string{"v1", "v1beta1"} {
		for path, h := range map[string]http.Handler{
			convertPath(version):         conversion.NewHandler(op.registry),
			admitPath(version):           op.admit,
			validatePizzaPath(version):   op.validatePizza,
			validateToppingPath(version): op.validateTopping,
		} {
			mux.Handle(path, promhttp.InstrumentHandlerDuration(requests.MustCurryWith(prometheus.Labels{"path": path}), h))
		}
	}
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.Handle("/healthz", webhook.Checks{})
	checks := webhook.Checks{
		"informer-pizzas":   op.pizzasOf.Check,
		"informer-toppings": op.known.Check,
	}
	if c, ok := certs.(interface{ Check() error }); ok {
		checks["certificate"] = func(*http.Request) error { return c.Check() }
	}
	mux.Handle("/readyz", checks)
	return mux
}

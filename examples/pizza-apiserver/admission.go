package apiserver

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// The names of the admission plug-ins for --disable-admission-plugins. They run the functions that
// package pizza serves as webhooks.
const (
	// DefaultsPlugin adds toppings to a pizza without toppings.
	DefaultsPlugin = "RestaurantDefaults"
	// ToppingsPlugin requires that the toppings of each pizza exist, and forbids the deletion of a
	// topping that is on a pizza.
	ToppingsPlugin = "RestaurantToppings"
)

// defaults returns the handler that adds toppings.
func defaults(s *runtime.Scheme, reg *conversion.Registry) http.Handler {
	return admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(pizza.DefaultToppings))
}

// menu has the pizzas and the toppings of the server, from its own watches.
type menu struct {
	pizzas, toppings cache.SharedIndexInformer
	known            *reference.Target
	pizzasOf         *reference.Referrers
}

// newMenu returns the menu of the server that the configuration points to, which is this one.
// Call run to start its informers.
func newMenu(loopback *rest.Config) (*menu, error) {
	client, err := dynamic.NewForConfig(loopback)
	if err != nil {
		return nil, err
	}
	pizzas, toppings := v1beta1.GroupVersion.WithResource("pizzas"), v1alpha1.GroupVersion.WithResource("toppings")
	m := &menu{pizzas: newInformer(client.Resource(pizzas)), toppings: newInformer(client.Resource(toppings))}
	topping := reference.ClusterScoped(toppings.GroupResource())
	names, err := reference.Fields[*unstructured.Unstructured](reference.Field{Name: "spec.toppings[*].name"})
	if err != nil {
		return nil, err
	}
	var targetErr, referrersErr error
	m.known, targetErr = reference.NewTarget(topping, m.toppings, func(ctx context.Context, _, name string) error {
		_, err := client.Resource(toppings).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	m.pizzasOf, referrersErr = reference.NewReferrers(pizzas.GroupResource(), m.pizzas, topping, names)
	return m, errors.Join(targetErr, referrersErr)
}

func newInformer(client dynamic.ResourceInterface) cache.SharedIndexInformer {
	return reference.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: client.Watch,
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
}

// run runs the informers until the context is done.
func (m *menu) run(ctx context.Context) {
	go m.toppings.RunWithContext(ctx)
	m.pizzas.RunWithContext(ctx)
}

// validation has a function for each version of a pizza, so that an error has the field of the object
// that the user wrote.
func (m *menu) validation(s *runtime.Scheme) http.Handler {
	return admission.NewHandler(s,
		admission.Validate(reference.Exists(m.known, pizza.ToppingsOf)),
		admission.Validate(reference.Exists(m.known, pizza.ToppingsOfAlpha)),
		admission.ValidateDelete(reference.NotReferenced[*v1alpha1.Topping](m.pizzasOf)))
}

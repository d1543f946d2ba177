package reference_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
)

// Pizzas may name only toppings that exist, and a topping that is named stays.
func Example() {
	// Real informers come from client-go; here one is filled by hand.
	toppingInformer := &informer{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	pizzaInformer := &informer{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	getTopping := func(_ context.Context, _, name string) error { return apierrors.NewNotFound(toppings, name) }

	known := reference.NewTarget(toppings, toppingInformer, getTopping)
	referrers, err := reference.NewReferrers(pizzas, pizzaInformer, toppingsOf)
	if err != nil {
		panic(err)
	}
	knownToppings := reference.Exists(known, toppingsOf)
	unusedTopping := reference.NotReferenced[*v1alpha1.Topping](toppings, referrers)

	_ = toppingInformer.Add(topping("tomato"))
	errs, err := knownToppings(context.Background(), pizza("margherita", "tomato", "mozarella"))
	fmt.Println(errs.ToAggregate(), err)

	_ = pizzaInformer.Add(pizza("marinara", "tomato"))
	_, err = unusedTopping(context.Background(), topping("tomato"))
	fmt.Println(err)

	// Both are what a handler takes.
	_ = []admission.Option{admission.Validate(knownToppings), admission.ValidateDelete(unusedTopping)}
	// Output:
	// spec.toppings[1].name: Not found: "mozarella" <nil>
	// toppings.restaurant.programming-kubernetes.info "tomato" is forbidden: it is used by pizzas: default/marinara
}

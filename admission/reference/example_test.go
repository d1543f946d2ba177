package reference_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/webhook"
)

// Pizzas may reference only toppings that exist. A referenced topping cannot be deleted.
func Example() {
	// Real informers come from client-go. The example fills its informers itself.
	toppingInformer, pizzaInformer := holding(), holding()
	getTopping := func(_ context.Context, _, name string) error { return apierrors.NewNotFound(toppings, name) }

	topping := reference.ClusterScoped(toppings)
	known, err := reference.NewTarget(topping, reference.Unwatched(toppingInformer), getTopping)
	if err != nil {
		panic(err)
	}
	toppingsOf := func(p *v1beta1.Pizza) (refs []reference.Ref) {
		for i, t := range p.Spec.Toppings {
			refs = append(refs, reference.Ref{Path: field.NewPath("spec", "toppings").Index(i).Child("name"), Name: t.Name})
		}
		return refs
	}
	pizzasOf, err := reference.NewReferrers(pizzas, reference.Unwatched(pizzaInformer), topping, toppingsOf)
	if err != nil {
		panic(err)
	}
	knownToppings := reference.Exists(known, toppingsOf)
	unusedTopping := reference.NotReferenced[*v1alpha1.Topping](pizzasOf)

	tomato := &v1alpha1.Topping{}
	tomato.Name = "tomato"
	toppingInformer.add(tomato)
	errs, err := knownToppings(context.Background(), pizza("margherita", "tomato", "mozarella"))
	fmt.Println(errs.ToAggregate(), err)

	pizzaInformer.add(pizza("marinara", "tomato"))
	_, err = unusedTopping(context.Background(), tomato)
	fmt.Println(err)

	// Register both functions in a handler.
	_ = []admission.Option{admission.Validate(knownToppings), admission.ValidateDelete(unusedTopping)}
	// Output:
	// spec.toppings[1].name: Not found: "mozarella" <nil>
	// toppings.restaurant.programming-kubernetes.info "tomato" is forbidden: referenced by pizzas: default/marinara
}

// Pizzas may reference secrets in another namespace only if the policy allows it.
func ExampleCrossNamespace() {
	getSecret := func(_ context.Context, _, name string) error { return apierrors.NewNotFound(secrets, name) }
	known, err := reference.NewTarget(reference.Namespaced(secrets), reference.Unwatched(holding(secret("shared", "ca"))), getSecret)
	if err != nil {
		panic(err)
	}
	// A policy may also look for an object in to.Namespace that allows it.
	shared := func(_ context.Context, from string, to cache.ObjectName) (bool, error) {
		return to.Namespace == "shared", nil
	}
	check := reference.Exists(known, secretsOf, reference.CrossNamespace(shared))
	errs, err := check(context.Background(), pizza("margherita", "shared/ca", "private/ca"))
	fmt.Println(errs.ToAggregate(), err)
	// Output:
	// spec.toppings[1].name: Forbidden: objects in namespace "default" may not name secrets in namespace "private" <nil>
}

// An operator with a dynamic informer, live reads of metadata, and a permission check.
func Example_dynamic() {
	setUp := func(config *rest.Config) (admission.Option, webhook.Checks, error) {
		ovens := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "ovens"}
		objects, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		live, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		users, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, nil, err
		}
		informer := reference.NewInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				return objects.Resource(ovens).List(ctx, opts)
			},
			WatchFuncWithContext: objects.Resource(ovens).Watch,
		}, &unstructured.Unstructured{}, 0, cache.Indexers{})
		known, err := reference.NewTarget(reference.Namespaced(ovens.GroupResource()), informer, reference.Metadata(live, ovens))
		if err != nil {
			return nil, nil, err
		}
		ovenOf := func(p *v1beta1.Pizza) []reference.Ref { return nil }
		mayUse := reference.Authorize(users.AuthorizationV1().SubjectAccessReviews().Create, "get")
		return admission.Validate(reference.Exists(known, ovenOf, mayUse)), webhook.Checks{"ovens": known.Ready}, nil
	}
	option, checks, err := setUp(&rest.Config{Host: "https://127.0.0.1:6443"})
	fmt.Println(option != nil, len(checks), err)
	fmt.Println(checks["ovens"](nil))
	// Output:
	// true 1 <nil>
	// the informer of ovens.example.com has not synced yet
}

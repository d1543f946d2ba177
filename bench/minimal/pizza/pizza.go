// Package pizza contains the kinds and conversions of the minimal webhooks.
package pizza

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// Scheme returns a scheme with the kinds.
func Scheme() (*runtime.Scheme, error) {
	return scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
}

// ToHub converts a pizza to v1beta1.
func ToHub(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	out.ObjectMeta = in.ObjectMeta // the peer needs it
	for _, name := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

// FromHub converts a pizza from v1beta1.
func FromHub(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	out.ObjectMeta = in.ObjectMeta
	for _, topping := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
	}
	return nil
}

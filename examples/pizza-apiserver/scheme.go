package apiserver

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// NewScheme returns the kinds of the restaurant in the served versions and in the
// internal one, with conversions and defaults. The resources add their validation.
func NewScheme() (*runtime.Scheme, error) {
	return scheme.New(
		scheme.Version(restaurant.GroupVersion, &restaurant.Pizza{}, &restaurant.PizzaList{}, &restaurant.Topping{}, &restaurant.ToppingList{}),
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}),
		scheme.Default(defaultAlpha),
		scheme.Default(defaultBeta),
		scheme.APIServer(),
		scheme.Functions(func(s *runtime.Scheme) error {
			reg, err := NewRegistry(s)
			if err != nil {
				return err
			}
			return reg.AddToScheme(s)
		}),
	)
}

// NewRegistry returns the conversions between the served versions and the internal hub.
func NewRegistry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	return reg, errors.Join(
		conversion.AddSpoke(reg, alphaToHub, hubToAlpha),
		conversion.AddSpoke(reg, betaToHub, hubToBeta),
		conversion.AddSpoke(reg, toppingToHub, hubToTopping),
	)
}

package apiserver

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/scheme/resource"
)

// newResources returns the resources of the server, whose names, defaults, rules and columns are those of the definitions
// that package pizza applies to a cluster. The scheme has the conversions of the registry.
func newResources() (*runtime.Scheme, *conversion.Registry, []*resource.Resource, error) {
	s, err := pizza.NewScheme()
	if err != nil {
		return nil, nil, nil, err
	}
	reg, registryErr := pizza.NewRegistry(s)
	definitions, err := schema.ParseAll(bytes.Join(pizza.Definitions(), []byte("---\n")))
	if err := errors.Join(registryErr, err); err != nil {
		return nil, nil, nil, err
	}
	if err := scheme.Install(s, scheme.APIServer(), scheme.Functions(reg.AddToScheme)); err != nil {
		return nil, nil, nil, err
	}
	pizzas, pizzaErr := resource.New[*v1beta1.Pizza](s, definitions[0])
	toppings, toppingErr := resource.New[*v1alpha1.Topping](s, definitions[1])
	return s, reg, []*resource.Resource{pizzas, toppings}, errors.Join(pizzaErr, toppingErr)
}

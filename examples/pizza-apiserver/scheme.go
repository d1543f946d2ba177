package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// newScheme returns the kinds of package pizza with their conversions, and with Go functions for the
// defaults of their schemas. The registry has the same conversions.
func newScheme() (*runtime.Scheme, *conversion.Registry, error) {
	s, err := pizza.NewScheme()
	if err != nil {
		return nil, nil, err
	}
	reg, err := pizza.NewRegistry(s)
	if err != nil {
		return nil, nil, err
	}
	return s, reg, scheme.Install(s, scheme.APIServer(), scheme.Default(defaultQuantity), scheme.Functions(reg.AddToScheme))
}

// defaultQuantity sets the quantity of each topping, which is 1 by default.
func defaultQuantity(pizza *v1beta1.Pizza) {
	for i := range pizza.Spec.Toppings {
		if topping := &pizza.Spec.Toppings[i]; topping.Quantity == nil {
			topping.Quantity = new(int32(1))
		}
	}
}

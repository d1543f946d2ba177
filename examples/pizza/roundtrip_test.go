package pizza

import (
	"testing"

	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/roundtrip"
)

func TestConversion(t *testing.T) {
	roundtrip.Test(t, registry(t), roundtrip.Funcs(alphaToppings, betaToppings))
}

// alphaToppings gives a pizza the portions of a topping one after another: v1beta1, which
// counts them, does not keep another order, and the order does not matter.
func alphaToppings(spec *v1alpha1.PizzaSpec, c randfill.Continue) {
	var counted v1beta1.PizzaSpec
	betaToppings(&counted, c)
	if counted.Toppings == nil {
		return
	}
	spec.Toppings = []string{}
	for _, topping := range counted.Toppings {
		for range *topping.Quantity {
			spec.Toppings = append(spec.Toppings, topping.Name)
		}
	}
}

// betaToppings gives a pizza each topping once, with a quantity, as the API server does
// by default, and MaxPortions in all.
func betaToppings(spec *v1beta1.PizzaSpec, c randfill.Continue) {
	if c.Intn(4) == 0 {
		return
	}
	spec.Toppings = []v1beta1.PizzaTopping{}
	left := int32(v1beta1.MaxPortions)
	for _, name := range []string{"tomato", "mozzarella", "salami", "olives"} {
		if n := c.Int31n(left + 1); n > 0 {
			spec.Toppings = append(spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(n)})
			left -= n
		}
	}
}

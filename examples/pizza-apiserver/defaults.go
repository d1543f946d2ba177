package apiserver

import (
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// defaultToppings returns what is on a pizza for which nothing is asked.
func defaultToppings() []string { return []string{"tomato", "mozzarella", "salami"} }

func defaultAlpha(pizza *v1alpha1.Pizza) {
	if len(pizza.Spec.Toppings) == 0 {
		pizza.Spec.Toppings = defaultToppings()
	}
}

func defaultBeta(pizza *v1beta1.Pizza) {
	if len(pizza.Spec.Toppings) == 0 {
		pizza.Spec.Toppings = nil
		for _, name := range defaultToppings() {
			pizza.Spec.Toppings = append(pizza.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
		}
	}
	for i := range pizza.Spec.Toppings {
		if topping := &pizza.Spec.Toppings[i]; topping.Quantity == nil {
			topping.Quantity = new(int32(1))
		}
	}
}

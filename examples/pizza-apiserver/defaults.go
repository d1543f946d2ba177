package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// addDefaults registers what the codecs call for each object that they decode, before it is
// converted. A default is part of a version: another may have another.
func addDefaults(s *runtime.Scheme) error {
	s.AddTypeDefaultingFunc(&v1alpha1.Pizza{}, func(o any) { defaultAlpha(o.(*v1alpha1.Pizza)) })
	s.AddTypeDefaultingFunc(&v1beta1.Pizza{}, func(o any) { defaultBeta(o.(*v1beta1.Pizza)) })
	return nil
}

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

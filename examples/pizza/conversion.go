package pizza

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// NewRegistry returns the conversions of the restaurant: v1beta1 is the hub.
func NewRegistry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub); err != nil {
		return nil, err
	}
	return reg, reg.Check()
}

// pizzaToHub counts equal toppings. The order does not matter; each topping
// keeps the place of its first portion.
func pizzaToHub(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	out.Status = v1beta1.PizzaStatus(*in.Status.DeepCopy())
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = []v1beta1.PizzaTopping{}
	index := map[string]int{}
	for _, name := range in.Spec.Toppings {
		i, known := index[name]
		if !known {
			index[name] = len(out.Spec.Toppings)
			out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(int32(1))})
			continue
		}
		*out.Spec.Toppings[i].Quantity++
	}
	return nil
}

// A conversion to v1alpha1 writes at most maxNames names of maxBytes in all. It may come before
// validation, so a quantity of a billion must not use up the memory. The bound of the schema,
// v1beta1.MaxPortions, would be too low: pizzas that were stored before the schema had that bound
// must stay readable, and a pizza with too many names is converted before the API server rejects it.
const (
	maxNames = 10_000
	maxBytes = 3 << 20
)

// pizzaFromHub repeats each topping as often as its quantity says.
func pizzaFromHub(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	out.Status = v1alpha1.PizzaStatus(*in.Status.DeepCopy())
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = []string{}
	toppings := field.NewPath("spec", "toppings")
	size := 0
	for i, topping := range in.Spec.Toppings {
		n := quantity(topping)
		path := toppings.Index(i).Child("quantity")
		switch {
		case n < 1:
			return field.Invalid(path, n, "must be at least 1")
		case int(n) > maxNames-len(out.Spec.Toppings):
			return field.Invalid(path, n, fmt.Sprintf("v1alpha1 lists at most %d portions of toppings", maxNames))
		case int(n)*len(topping.Name) > maxBytes-size:
			return field.Invalid(path, n, fmt.Sprintf("v1alpha1 lists at most %d bytes of names", maxBytes))
		}
		size += int(n) * len(topping.Name)
		for range n {
			out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
		}
	}
	return nil
}

// quantity is 1 where none is given. The schema says so as well, but an object
// may reach a conversion before its defaults, or from before they were there.
func quantity(t v1beta1.PizzaTopping) int32 {
	if t.Quantity == nil {
		return 1
	}
	return *t.Quantity
}

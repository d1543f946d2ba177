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

// NewRegistry returns the conversions of the restaurant, whose hub is v1beta1.
func NewRegistry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub); err != nil {
		return nil, err
	}
	return reg, reg.Check()
}

// pizzaToHub counts equal toppings. Each topping has the place of its first portion, because the
// order does not matter.
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

// A conversion to v1alpha1 writes at most maxNames names of maxBytes in all, so that a quantity of
// a billion, which the API server may convert before it validates it, does not use up the memory.
// The bound of the schema, v1beta1.MaxPortions, would be too low, because pizzas that were stored
// before the schema had that bound must stay readable.
const (
	maxNames = 10_000
	maxBytes = 3 << 20
)

// pizzaFromHub repeats each topping by its quantity.
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

// quantity returns the quantity of a topping, and 1 if it is absent. The schema has this default
// too, but an object may be converted before it is defaulted, or may have been stored before the
// schema had the default.
func quantity(t v1beta1.PizzaTopping) int32 {
	if t.Quantity == nil {
		return 1
	}
	return *t.Quantity
}

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

// maxBytes bounds the names in a pizza of v1alpha1. No v1alpha1 request has more, because a request
// has at most 3 MiB (apiserver/pkg/server.NewConfig, MaxRequestBodyBytes). The bound of the schema,
// v1beta1.MaxPortions, would be too low. Pizzas that were stored before the schema had that bound
// must stay readable, and a pizza with too many names is converted before the API server rejects it.
const maxBytes = 3 << 20

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
		each := len(topping.Name) + len(",") // as in [a,b], the shortest list in YAML
		path := toppings.Index(i).Child("quantity")
		switch {
		case n < 1:
			return field.Invalid(path, n, "must be at least 1")
		case int(n) > (maxBytes-size)/each:
			return field.Invalid(path, n, fmt.Sprintf("the names of all portions must fit into %d bytes", maxBytes))
		}
		size += int(n) * each
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

package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// clone copies a value: what a conversion returns must share no memory with what it converts.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// alphaToHub counts equal toppings. Each keeps the place of its first portion.
func alphaToHub(_ context.Context, in *v1alpha1.Pizza, out *restaurant.Pizza) error {
	out.Status.Cost = clone(in.Status.Cost)
	out.Spec.Toppings = nil
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = []restaurant.PizzaTopping{}
	index := map[string]int{}
	for _, name := range in.Spec.Toppings {
		i, known := index[name]
		if !known {
			i = len(out.Spec.Toppings)
			index[name] = i
			out.Spec.Toppings = append(out.Spec.Toppings, restaurant.PizzaTopping{Name: name})
		}
		out.Spec.Toppings[i].Quantity++
	}
	return nil
}

// maxNames bounds what one object of v1alpha1 can become. Its requests are JSON or YAML of at
// most 3 MiB (apiserver/pkg/server.NewConfig, MaxRequestBodyBytes), and so have fewer names: one
// takes two bytes at least, in a list of YAML such as [a,b]. A valid pizza has
// v1beta1.MaxPortions. A v1alpha1 pizza with too many toppings has to be converted back before
// it is refused, so that the error has the path of a v1alpha1 pizza.
const maxNames = 1 << 21

// hubToAlpha repeats each topping as often as its quantity says.
func hubToAlpha(_ context.Context, in *restaurant.Pizza, out *v1alpha1.Pizza) error {
	out.Status.Cost = clone(in.Status.Cost)
	out.Spec.Toppings = nil
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = []string{}
	toppings := field.NewPath("spec", "toppings")
	for i, topping := range in.Spec.Toppings {
		path := toppings.Index(i).Child("quantity")
		switch {
		case topping.Quantity < 1:
			return field.Invalid(path, topping.Quantity, "must be at least 1")
		case int(topping.Quantity) > maxNames-len(out.Spec.Toppings):
			return field.Invalid(path, topping.Quantity, fmt.Sprintf("v1alpha1 lists at most %d portions of toppings", maxNames))
		}
		for range topping.Quantity {
			out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
		}
	}
	return nil
}

// betaToHub takes a quantity that is not given for 1, as the default does: a conversion may
// come before it.
func betaToHub(_ context.Context, in *v1beta1.Pizza, out *restaurant.Pizza) error {
	out.Status.Cost = clone(in.Status.Cost)
	out.Spec.Toppings = nil
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = make([]restaurant.PizzaTopping, len(in.Spec.Toppings))
	for i, topping := range in.Spec.Toppings {
		out.Spec.Toppings[i] = restaurant.PizzaTopping{Name: topping.Name, Quantity: 1}
		if topping.Quantity != nil {
			out.Spec.Toppings[i].Quantity = *topping.Quantity
		}
	}
	return nil
}

func hubToBeta(_ context.Context, in *restaurant.Pizza, out *v1beta1.Pizza) error {
	out.Status.Cost = clone(in.Status.Cost)
	out.Spec.Toppings = nil
	if in.Spec.Toppings == nil {
		return nil
	}
	out.Spec.Toppings = make([]v1beta1.PizzaTopping, len(in.Spec.Toppings))
	for i, topping := range in.Spec.Toppings {
		out.Spec.Toppings[i] = v1beta1.PizzaTopping{Name: topping.Name, Quantity: new(topping.Quantity)}
	}
	return nil
}

func toppingToHub(_ context.Context, in *v1alpha1.Topping, out *restaurant.Topping) error {
	out.Spec = restaurant.ToppingSpec(in.Spec)
	return nil
}

func hubToTopping(_ context.Context, in *restaurant.Topping, out *v1alpha1.Topping) error {
	out.Spec = v1alpha1.ToppingSpec(in.Spec)
	return nil
}

package conversion_test

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// A version that lists names converts to one that counts them, and back.
func Example() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	toHub := func(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
		for _, name := range in.Spec.Toppings {
			out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(int32(1))})
		}
		return nil
	}
	fromHub := func(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
		for i, topping := range in.Spec.Toppings {
			if *topping.Quantity != 1 {
				return field.Invalid(field.NewPath("spec", "toppings").Index(i).Child("quantity"), *topping.Quantity, "v1alpha1 has no quantities")
			}
			out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
		}
		return nil
	}

	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, toHub, fromHub); err != nil {
		panic(err)
	}
	http.NewServeMux().Handle("/convert", conversion.NewHandler(reg))

	margherita := []byte(`{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"margherita"},"spec":{"toppings":["tomato"]}}`)
	hub, err := reg.Convert(context.Background(), margherita, v1beta1.GroupVersion)
	fmt.Println(string(hub), err)

	double := []byte(`{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"double"},"spec":{"toppings":[{"name":"tomato","quantity":2}]}}`)
	_, err = reg.Convert(context.Background(), double, v1alpha1.GroupVersion)
	fmt.Println(err)
	// Output:
	// {"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"margherita"},"spec":{"toppings":[{"name":"tomato","quantity":1}]}} <nil>
	// cannot convert Pizza double from restaurant.programming-kubernetes.info/v1beta1 to restaurant.programming-kubernetes.info/v1alpha1: spec.toppings[0].quantity: Invalid value: 2: v1alpha1 has no quantities
}

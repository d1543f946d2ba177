package conversion_test

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// The CronTab of the Kubernetes documentation: hostPort became host and port.
func ExampleAddFields() {
	reg := conversion.NewRegistry(runtime.NewScheme()) // no Go types are needed
	err := conversion.AddFields(reg, schema.GroupVersionKind{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}, "v1",
		conversion.Split("hostPort", ":", conversion.String("host"), conversion.Integer("port")),
		conversion.Enum("mode", "policy", "FAST", "Fast", "SLOW", "Slow"),
	)
	if err != nil {
		panic(err)
	}
	v1 := schema.GroupVersion{Group: "stable.example.com", Version: "v1"}
	for _, hostPort := range []string{"localhost:1234", "localhost"} {
		object := fmt.Appendf(nil, `{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"x"},"hostPort":%q,"mode":"FAST","any":1.0}`, hostPort)
		converted, err := reg.Convert(context.Background(), object, v1)
		fmt.Println(string(converted), err)
	}
	// Output:
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"x"},"any":1.0,"host":"localhost","port":1234,"policy":"Fast"} <nil>
	//  cannot convert CronTab x from stable.example.com/v1beta1 to stable.example.com/v1: hostPort: Invalid value: "localhost": must be <host>:<port, an integer>
}

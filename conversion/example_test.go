package conversion_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// A pizza is converted from a version with a list of names to a version with quantities.
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

// In the CronTab of the Kubernetes documentation, hostPort became host and port.
func ExampleAddFields() {
	reg := conversion.NewRegistry(runtime.NewScheme()) // no Go types are needed
	err := conversion.AddFields(reg, schema.GroupVersionKind{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}, "v1",
		conversion.Split("hostPort", ":", conversion.Part{Path: "host"}, conversion.Part{Path: "port", Integer: true}),
		conversion.Rename("mode", "policy"),
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
	// {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"x"},"any":1.0,"host":"localhost","port":1234,"policy":"FAST"} <nil>
	//  cannot convert CronTab x from stable.example.com/v1beta1 to stable.example.com/v1: hostPort: Invalid value: "localhost": must be <host>:<port, an integer>
}

// Usually conversion-gen generates the functions of the scheme. This example registers one pair
// that is written by hand.
func ExampleAddSchemeFunctions() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	for _, err := range []error{
		s.AddConversionFunc((*v1alpha1.Pizza)(nil), (*v1beta1.Pizza)(nil), func(in, out any, _ apiconversion.Scope) error {
			for _, name := range in.(*v1alpha1.Pizza).Spec.Toppings {
				out := &out.(*v1beta1.Pizza).Spec
				out.Toppings = append(out.Toppings, v1beta1.PizzaTopping{Name: name})
			}
			return nil
		}),
		s.AddConversionFunc((*v1beta1.Pizza)(nil), (*v1alpha1.Pizza)(nil), func(in, out any, _ apiconversion.Scope) error {
			for _, topping := range in.(*v1beta1.Pizza).Spec.Toppings {
				out := &out.(*v1alpha1.Pizza).Spec
				out.Toppings = append(out.Toppings, topping.Name)
			}
			return nil
		}),
	} {
		if err != nil {
			panic(err)
		}
	}
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSchemeFunctions(reg, v1beta1.GroupVersion.WithKind("Pizza")); err != nil {
		panic(err)
	}
	object := []byte(`{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"margherita"},"spec":{"toppings":[{"name":"tomato"}]}}`)
	converted, err := reg.Convert(context.Background(), object, v1alpha1.GroupVersion)
	fmt.Println(string(converted), err)
	// Output:
	// {"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"margherita"},"spec":{"toppings":["tomato"]}} <nil>
}

// The old version v0 has no Go type any longer. Its pizzas had one topping.
func ExampleAddUnstructuredSpoke() {
	s, err := scheme.New(scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}))
	if err != nil {
		panic(err)
	}
	reg := conversion.NewRegistry(s)
	old := schema.GroupVersion{Group: v1beta1.GroupVersion.Group, Version: "v0"}
	err = conversion.AddUnstructuredSpoke(reg, old.WithKind("Pizza"), "",
		func(_ context.Context, in *unstructured.Unstructured, out *v1beta1.Pizza) error {
			topping, found, err := unstructured.NestedString(in.Object, "spec", "topping")
			if found {
				out.Spec.Toppings = []v1beta1.PizzaTopping{{Name: topping}}
			}
			return err
		},
		func(_ context.Context, in *v1beta1.Pizza, out *unstructured.Unstructured) error {
			if len(in.Spec.Toppings) == 0 {
				return nil
			}
			return unstructured.SetNestedField(out.Object, in.Spec.Toppings[0].Name, "spec", "topping")
		})
	if err != nil {
		panic(err)
	}
	object := []byte(`{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"margherita"},"spec":{"toppings":[{"name":"tomato"}]}}`)
	converted, err := reg.Convert(context.Background(), object, old)
	fmt.Println(string(converted), err)
	// Output:
	// {"apiVersion":"restaurant.programming-kubernetes.info/v0","kind":"Pizza","metadata":{"name":"margherita"},"spec":{"topping":"tomato"}} <nil>
}

// v1alpha1 has no quantities. A user adds a topping in v1alpha1, and the quantities are preserved.
func ExampleLossless() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	reg := conversion.NewRegistry(s)
	err = conversion.AddSpoke(reg,
		func(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
			for _, name := range in.Spec.Toppings {
				out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
			}
			return nil
		},
		func(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
			for _, topping := range in.Spec.Toppings {
				out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
			}
			return nil
		})
	if err != nil {
		panic(err)
	}
	definition, err := os.ReadFile("../examples/pizza/config/crd/restaurant.programming-kubernetes.info_pizzas.yaml") // most programs embed it
	if err != nil {
		panic(err)
	}
	if err := conversion.Lossless(reg, v1alpha1.GroupVersion.WithKind("Pizza"), lossless.ListMapKeys(definition)); err != nil {
		panic(err)
	}

	hub := []byte(`{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"double"},"spec":{"toppings":[{"name":"tomato","quantity":2}]}}`)
	spoke, err := reg.Convert(context.Background(), hub, v1alpha1.GroupVersion)
	fmt.Println(string(spoke), err)
	edited := bytes.Replace(spoke, []byte(`["tomato"]`), []byte(`["basil","tomato"]`), 1)
	back, err := reg.Convert(context.Background(), edited, v1beta1.GroupVersion)
	fmt.Println(string(back), err)
	// Output:
	// {"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"double","annotations":{"conversion.crdkit.github.io/lost":"{\"spoke\":\"v1alpha1\",\"hub\":\"v1beta1\",\"of\":\"4GBkPucurQg\",\"lost\":[{\"path\":[\"spec\",\"toppings\",{\"key\":{\"name\":\"tomato\"}},\"quantity\"],\"value\":2}]}"}},"spec":{"toppings":["tomato"]}} <nil>
	// {"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"double"},"spec":{"toppings":[{"name":"basil"},{"name":"tomato","quantity":2}]}} <nil>
}

// A function prints the outcome of each ConversionReview.
func ExampleObserve() {
	reg := conversion.NewRegistry(runtime.NewScheme())
	if err := conversion.AddFields(reg, schema.GroupVersionKind{Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"}, "v1",
		conversion.Rename("host", "spec.host")); err != nil {
		panic(err)
	}
	handler := conversion.NewHandler(reg, conversion.Observe(func(o conversion.Observation) {
		fmt.Println(o.Objects, "to", o.To, o.Err)
	}))
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"stable.example.com/v1","objects":[
		{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"x"},"host":"localhost"}]}}`))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	fmt.Println(response.Body)
	// Output:
	// map[stable.example.com/v1beta1, Kind=CronTab:1] to stable.example.com/v1 <nil>
	// {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"u","convertedObjects":[{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"x"},"spec":{"host":"localhost"}}],"result":{"status":"Success"}}}
}

package crdkit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

func handlers() (*http.ServeMux, error) {
	// The kinds.
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()

	// Conversions are plain functions; nothing is added to the API types.
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub); err != nil { // types are inferred
		return nil, err
	}
	mux.Handle("/convert", conversion.NewHandler(reg))

	// Admission functions are typed, and return field errors. Written for one version,
	// they serve all versions of the kind through the conversion.
	mux.Handle("/admit", admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(defaultToppings)))
	mux.Handle("/validate", admission.NewHandler(s, admission.ConvertWith(reg), admission.Validate(knownToppings)))
	return mux, nil
}

func pizzaToHub(_ context.Context, in *v1alpha1.Pizza, out *v1beta1.Pizza) error {
	for _, name := range in.Spec.Toppings { // crdkit copies the metadata
		out.Spec.Toppings = append(out.Spec.Toppings, v1beta1.PizzaTopping{Name: name})
	}
	return nil
}

func pizzaFromHub(_ context.Context, in *v1beta1.Pizza, out *v1alpha1.Pizza) error {
	for _, topping := range in.Spec.Toppings {
		out.Spec.Toppings = append(out.Spec.Toppings, topping.Name)
	}
	return nil
}

func defaultToppings(_ context.Context, pizza *v1beta1.Pizza) error {
	if len(pizza.Spec.Toppings) == 0 {
		pizza.Spec.Toppings = []v1beta1.PizzaTopping{{Name: "tomato"}, {Name: "mozzarella"}, {Name: "salami"}}
	}
	return nil
}

func knownToppings(_ context.Context, pizza *v1beta1.Pizza) (errs field.ErrorList, _ error) {
	for i, topping := range pizza.Spec.Toppings {
		if topping.Name == "pineapple" {
			errs = append(errs, field.Invalid(field.NewPath("spec", "toppings").Index(i), topping.Name, "not in this house"))
		}
	}
	return errs, nil
}

func Example() {
	mux, err := handlers()
	if err != nil {
		panic(err)
	}
	post := func(path, review string) {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(review))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Body)
	}
	post("/convert", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"1",
		"desiredAPIVersion":"restaurant.programming-kubernetes.info/v1beta1","objects":[
		{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"x"},"spec":{"toppings":["tomato"]}}]}}`)
	post("/validate", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"2","operation":"CREATE","name":"x",
		"kind":{"group":"restaurant.programming-kubernetes.info","version":"v1alpha1","kind":"Pizza"},"object":
		{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"x"},"spec":{"toppings":["pineapple"]}}}}`)
	// Output:
	// {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"1","convertedObjects":[{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"x"},"spec":{"toppings":[{"name":"tomato"}]}}],"result":{"status":"Success"}}}
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"2","allowed":false,"status":{"metadata":{},"status":"Failure","message":"Pizza.restaurant.programming-kubernetes.info \"x\" is invalid: spec.toppings[0]: Invalid value: \"pineapple\": not in this house","reason":"Invalid","details":{"name":"x","group":"restaurant.programming-kubernetes.info","kind":"Pizza","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"pineapple\": not in this house","field":"spec.toppings[0]"}]},"code":422}}}
}

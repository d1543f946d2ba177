package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// A webhook adds a topping, and preserves the field that the Go type does not have.
func Example() {
	s, err := scheme.New(scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}))
	if err != nil {
		panic(err)
	}
	withTomato := func(_ context.Context, pizza *v1beta1.Pizza) error {
		pizza.Spec.Toppings = append([]v1beta1.PizzaTopping{{Name: "tomato"}}, pizza.Spec.Toppings...)
		return nil
	}
	noPineapple := func(_ context.Context, pizza *v1beta1.Pizza) (errs field.ErrorList, _ error) {
		for i, topping := range pizza.Spec.Toppings {
			if topping.Name == "pineapple" {
				errs = append(errs, field.Forbidden(field.NewPath("spec", "toppings").Index(i), "not in this house"))
			}
		}
		return errs, nil
	}
	h := admission.NewHandler(s, admission.Mutate(withTomato), admission.Validate(noPineapple))

	for _, topping := range []string{"salami", "pineapple"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",
			"operation":"CREATE","name":"x","kind":{"group":"restaurant.programming-kubernetes.info","version":"v1beta1","kind":"Pizza"},
			"object":{"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"x"},
			"spec":{"toppings":[{"name":"`+topping+`","future":true}]}}}}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		// The patch, [{"op":"add","path":"/spec/toppings/0","value":{"name":"tomato"}}], goes in base64.
		fmt.Println(w.Body)
	}
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvdG9wcGluZ3MvMCIsInZhbHVlIjp7Im5hbWUiOiJ0b21hdG8ifX1d","patchType":"JSONPatch"}}
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"Pizza.restaurant.programming-kubernetes.info \"x\" is invalid: spec.toppings[1]: Forbidden: not in this house","reason":"Invalid","details":{"name":"x","group":"restaurant.programming-kubernetes.info","kind":"Pizza","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: not in this house","field":"spec.toppings[1]"}]},"code":422}}}
}

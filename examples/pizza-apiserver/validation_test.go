package apiserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Errors have the paths of the version.
func TestValidation_ErrorPaths(t *testing.T) {
	cost := -1.0
	alpha := func(toppings ...string) *v1alpha1.Pizza {
		return &v1alpha1.Pizza{Spec: v1alpha1.PizzaSpec{Toppings: toppings}}
	}
	beta := func(toppings ...v1beta1.PizzaTopping) *v1beta1.Pizza {
		return &v1beta1.Pizza{Spec: v1beta1.PizzaSpec{Toppings: toppings}}
	}
	options, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		obj  runtime.Object
		want []string
	}{
		{"a pizza", alpha("tomato", "salami.hot"), nil},
		{"100 portions", alpha(slices.Repeat([]string{"tomato"}, 100)...), nil},
		{"101 portions", alpha(slices.Repeat([]string{"tomato"}, 101)...), []string{"spec.toppings: Too many: 101: must have at most 100 items"}},
		{"names that no topping has", alpha("tomato", "", "Nails", strings.Repeat("a", 254)), []string{
			`spec.toppings[1]: Invalid value: "": must match ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`,
			`spec.toppings[2]: Invalid value: "Nails": must match ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`,
			`spec.toppings[3]: Too long: may not be more than 253 bytes`,
		}},
		{"a negative cost", &v1alpha1.Pizza{Status: v1alpha1.PizzaStatus{Cost: &cost}}, []string{"status.cost: Invalid value: -1: must not be negative"}},
		{"a pizza of v1beta1", beta(v1beta1.PizzaTopping{Name: "tomato", Quantity: new(int32(60))}, v1beta1.PizzaTopping{Name: "salami", Quantity: new(int32(40))}), nil},
		{"too much in all", beta(v1beta1.PizzaTopping{Name: "tomato", Quantity: new(int32(60))}, v1beta1.PizzaTopping{Name: "salami", Quantity: new(int32(41))}), []string{
			"spec.toppings: Invalid value: 101: a pizza has at most 100 portions of toppings",
		}},
		{"nothing, no name, and the same twice", beta(v1beta1.PizzaTopping{Quantity: new(int32(0))}, v1beta1.PizzaTopping{Name: "a", Quantity: new(int32(1))}, v1beta1.PizzaTopping{Name: "a", Quantity: new(int32(1))}), []string{
			"spec.toppings[0].name: Required value: the name of a Topping",
			"spec.toppings[0].quantity: Invalid value: 0: must be from 1 to 100",
			`spec.toppings[2]: Duplicate value: "a"`,
		}},
		{"a topping", &v1alpha1.Topping{Spec: v1alpha1.ToppingSpec{Cost: 1000}}, nil},
		{"a topping that nobody can pay", &v1alpha1.Topping{Spec: v1alpha1.ToppingSpec{Cost: 1000.5}}, []string{"spec.cost: Invalid value: 1000.5: must be from 0 to 1000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, err := range options.scheme.Validate(t.Context(), nil, test.obj) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

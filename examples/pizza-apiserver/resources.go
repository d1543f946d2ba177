package apiserver

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme/resource"
)

// newResources returns the resources of the server, which holds pizzas in v1beta1, the hub of the
// conversions. It adds validation to the scheme.
func newResources(s *runtime.Scheme) ([]*resource.Resource, error) {
	pizzas, pizzaErr := resource.New[*v1beta1.Pizza](s, "pizzas",
		resource.ShortNames("pz"),
		resource.Categories("restaurant"),
		resource.Columns(pizzaCells,
			metav1.TableColumnDefinition{Name: "Toppings", Type: "string", Description: "What is on the pizza."},
			metav1.TableColumnDefinition{Name: "Cost", Type: "number", Description: "The cost of all toppings."}),
		resource.Validate(validateAlpha),
		resource.Validate(validateBeta))
	toppings, toppingErr := resource.New[*v1alpha1.Topping](s, "toppings",
		resource.ClusterScoped(),
		resource.Categories("restaurant"),
		resource.Columns(func(t *v1alpha1.Topping) []any { return []any{t.Spec.Cost} },
			metav1.TableColumnDefinition{Name: "Cost", Type: "number", Description: "The cost of one portion."}),
		resource.Validate(validateTopping))
	return []*resource.Resource{pizzas, toppings}, errors.Join(pizzaErr, toppingErr)
}

// pizzaCells says more than the JSONPath of a custom resource's column can: "tomato, mozzarella ×2".
// Each quantity is set, by default or by the conversion.
func pizzaCells(pizza *v1beta1.Pizza) []any {
	toppings := make([]string, len(pizza.Spec.Toppings))
	for i, topping := range pizza.Spec.Toppings {
		if toppings[i] = topping.Name; *topping.Quantity != 1 {
			toppings[i] += fmt.Sprintf(" ×%d", *topping.Quantity)
		}
	}
	var cost any
	if pizza.Status.Cost != nil {
		cost = *pizza.Status.Cost
	}
	return []any{strings.Join(toppings, ", "), cost}
}

package apiserver

import (
	"embed"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/scheme/resource"
)

// newResources returns what the server serves. It adds validation to the scheme.
func newResources(s *runtime.Scheme) ([]*resource.Resource, error) {
	pizzas, pizzaErr := resource.New[*restaurant.Pizza](s, "pizzas",
		resource.ShortNames("pz"),
		resource.Categories("restaurant"),
		resource.Columns(pizzaCells,
			metav1.TableColumnDefinition{Name: "Toppings", Type: "string", Description: "What is on the pizza."},
			metav1.TableColumnDefinition{Name: "Cost", Type: "number", Description: "The cost of all toppings."}),
		resource.Validate(validateAlpha),
		resource.Validate(validateBeta))
	toppings, toppingErr := resource.New[*restaurant.Topping](s, "toppings",
		resource.ClusterScoped(),
		resource.Categories("restaurant"),
		resource.Columns(func(t *restaurant.Topping) []any { return []any{t.Spec.Cost} },
			metav1.TableColumnDefinition{Name: "Cost", Type: "number", Description: "The cost of one portion."}),
		resource.Validate(validateTopping))
	return []*resource.Resource{pizzas, toppings}, errors.Join(pizzaErr, toppingErr)
}

// pizzaCells says more than the JSONPath of a custom resource's column can: "tomato, mozzarella ×2".
func pizzaCells(pizza *restaurant.Pizza) []any {
	toppings := make([]string, len(pizza.Spec.Toppings))
	for i, topping := range pizza.Spec.Toppings {
		if toppings[i] = topping.Name; topping.Quantity != 1 {
			toppings[i] += fmt.Sprintf(" ×%d", topping.Quantity)
		}
	}
	var cost any
	if pizza.Status.Cost != nil {
		cost = *pizza.Status.Cost
	}
	return []any{strings.Join(toppings, ", "), cost}
}

// The schemas of the served versions are those that controller-gen writes for the Go types, the same
// as in examples/pizza: kubectl explain and server-side apply need them. The files are
// CustomResourceDefinitions that are never applied.
//
//go:embed config/schemas/*.yaml
var definitions embed.FS

func readDefinitions() (crds [][]byte, err error) {
	files, err := definitions.ReadDir("config/schemas")
	for _, file := range files {
		text, readErr := definitions.ReadFile("config/schemas/" + file.Name())
		crds, err = append(crds, text), errors.Join(err, readErr)
	}
	return crds, err
}

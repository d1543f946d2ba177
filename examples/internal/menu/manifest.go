package menu

import (
	"fmt"
	"strings"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
)

// The names of pizzas for kubectl, in each version.
const (
	Group  = "restaurant.programming-kubernetes.info"
	Alphas = "pizzas.v1alpha1." + Group
	Betas  = "pizzas.v1beta1." + Group
)

// Create has kubectl create what it reads.
var Create = []string{"create", "-f", "-"}

// Manifest returns an object in YAML, with what follows its metadata.
func Manifest(apiVersion, kind, name, rest string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n%s\n", apiVersion, kind, name, rest)
}

// Topping returns a topping in YAML.
func Topping(name, cost string) string {
	return Manifest(v1alpha1.GroupVersion.String(), "Topping", name, "spec:\n  cost: "+cost)
}

// Pizza returns a pizza in YAML, in v1alpha1.
func Pizza(name string, toppings ...string) string {
	return Manifest(v1alpha1.GroupVersion.String(), "Pizza", name, "spec:\n  toppings: ["+strings.Join(toppings, ", ")+"]")
}

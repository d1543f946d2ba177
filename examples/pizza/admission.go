package pizza

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// DefaultToppings adds the toppings of a salami pizza to a pizza without toppings.
func DefaultToppings(_ context.Context, pizza *v1beta1.Pizza) error {
	if len(pizza.Spec.Toppings) > 0 {
		return nil
	}
	for _, name := range []string{"tomato", "mozzarella", "salami"} {
		pizza.Spec.Toppings = append(pizza.Spec.Toppings, v1beta1.PizzaTopping{Name: name, Quantity: new(int32(1))})
	}
	return nil
}

// costsSomething rejects a topping that costs nothing.
func costsSomething(_ context.Context, topping *v1alpha1.Topping) (errs field.ErrorList, _ error) {
	if topping.Spec.Cost == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "cost"), topping.Spec.Cost, "must not be zero"))
	}
	return errs, nil
}

// ToppingsOf returns the references of a pizza to Toppings.
func ToppingsOf(pizza *v1beta1.Pizza) []reference.Ref {
	var refs []reference.Ref
	for i, topping := range pizza.Spec.Toppings {
		refs = append(refs, reference.Ref{
			Path: field.NewPath("spec", "toppings").Index(i).Child("name"),
			Name: topping.Name,
		})
	}
	return refs
}

// ToppingsOfAlpha is ToppingsOf for v1alpha1, so that errors have the paths of the object that the
// user wrote.
func ToppingsOfAlpha(pizza *v1alpha1.Pizza) []reference.Ref {
	var refs []reference.Ref
	for i, name := range pizza.Spec.Toppings {
		refs = append(refs, reference.Ref{Path: field.NewPath("spec", "toppings").Index(i), Name: name})
	}
	return refs
}

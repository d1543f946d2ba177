package apiserver

import (
	"context"
	"fmt"
	"regexp"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// Each function validates one version, so that an error has the field of the object that the user
// wrote. A function for the hub alone could not name the field of a v1alpha1 pizza.

var (
	toppingsPath = field.NewPath("spec", "toppings")
	costPath     = field.NewPath("status", "cost")
)

func validateAlpha(_ context.Context, pizza, _ *v1alpha1.Pizza) (errs field.ErrorList) {
	if n := len(pizza.Spec.Toppings); n > v1beta1.MaxPortions {
		return field.ErrorList{field.TooMany(toppingsPath, n, v1beta1.MaxPortions)}
	}
	for i, name := range pizza.Spec.Toppings {
		errs = append(errs, validateName(toppingsPath.Index(i), name)...)
	}
	return append(errs, validateCost(costPath, pizza.Status.Cost)...)
}

func validateBeta(_ context.Context, pizza, _ *v1beta1.Pizza) (errs field.ErrorList) {
	if n := len(pizza.Spec.Toppings); n > v1beta1.MaxPortions {
		return field.ErrorList{field.TooMany(toppingsPath, n, v1beta1.MaxPortions)}
	}
	known, portions := map[string]bool{}, int64(0)
	for i, topping := range pizza.Spec.Toppings {
		path := toppingsPath.Index(i)
		if topping.Name == "" { // a Go type cannot tell an empty name from none
			errs = append(errs, field.Required(path.Child("name"), "the name of a Topping"))
		} else {
			errs = append(errs, validateName(path.Child("name"), topping.Name)...)
		}
		if known[topping.Name] {
			errs = append(errs, field.Duplicate(path, topping.Name))
		}
		known[topping.Name] = true
		if n := *topping.Quantity; n < 1 || n > v1beta1.MaxPortions { // set by default, and by the conversion
			errs = append(errs, field.Invalid(path.Child("quantity"), n, fmt.Sprintf("must be from 1 to %d", v1beta1.MaxPortions)))
		}
		portions += int64(*topping.Quantity)
	}
	if portions > v1beta1.MaxPortions {
		errs = append(errs, field.Invalid(toppingsPath, portions, fmt.Sprintf("a pizza has at most %d portions of toppings", v1beta1.MaxPortions)))
	}
	return append(errs, validateCost(costPath, pizza.Status.Cost)...)
}

// maxCost is what one portion of a topping may cost.
const maxCost = 1000

func validateTopping(_ context.Context, topping, _ *v1alpha1.Topping) field.ErrorList {
	if cost := topping.Spec.Cost; cost < 0 || cost > maxCost {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "cost"), cost, fmt.Sprintf("must be from 0 to %d", maxCost))}
	}
	return nil
}

// maxName is how many characters the name of a topping has.
const maxName = 253

var toppingName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func validateName(path *field.Path, name string) (errs field.ErrorList) {
	switch {
	case utf8.RuneCountInString(name) > maxName:
		return field.ErrorList{field.TooLong(path, name, maxName)}
	case !toppingName.MatchString(name):
		return field.ErrorList{field.Invalid(path, name, "must match "+toppingName.String())}
	}
	return nil
}

func validateCost(path *field.Path, cost *float64) field.ErrorList {
	if cost != nil && *cost < 0 {
		return field.ErrorList{field.Invalid(path, *cost, "must not be negative")}
	}
	return nil
}

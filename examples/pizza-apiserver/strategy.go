package apiserver

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

// strategy is what both resources have in common: how an object is written.
type strategy struct {
	rest.DeclarativeValidation // runs the functions of validation.go; it knows the types, too
	names.NameGenerator
	namespaced bool
}

func newStrategy(s *runtime.Scheme, namespaced bool) strategy {
	return strategy{rest.DeclarativeValidation{Scheme: s}, names.SimpleNameGenerator, namespaced}
}

func (s strategy) NamespaceScoped() bool                  { return s.namespaced }
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate says that an update needs a resourceVersion, as one of a custom
// resource does (apiextensions-apiserver/pkg/registry/customresource/strategy.go).
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

func (strategy) Canonicalize(runtime.Object)                               {}
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Validate checks the metadata; validation.go has the rest.
func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateObjectMeta(metadata(obj.(object)), s.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateUpdate leaves the metadata to rest.BeforeUpdate, which checks it.
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// pizzaStrategy writes pizzas, all but their status.
type pizzaStrategy struct{ strategy }

var (
	_ rest.RESTCreateUpdateStrategy      = pizzaStrategy{}
	_ rest.RESTDeleteStrategy            = pizzaStrategy{}
	_ rest.ResetFieldsStrategy           = pizzaStrategy{}
	_ rest.DeclarativeValidationStrategy = pizzaStrategy{}
)

func (pizzaStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	pizza := obj.(*restaurant.Pizza)
	pizza.Status = restaurant.PizzaStatus{}
	pizza.Generation = 1
}

func (pizzaStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	pizza, before := obj.(*restaurant.Pizza), old.(*restaurant.Pizza)
	pizza.Status = before.Status
	if !apiequality.Semantic.DeepEqual(pizza.Spec, before.Spec) {
		pizza.Generation = before.Generation + 1
	}
}

// GetResetFields names the fields that PrepareForUpdate takes back, so that they get no owner.
func (pizzaStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetPizza(fieldpath.MakePathOrDie("status"))
}

// pizzaStatusStrategy writes the status of pizzas, and nothing else.
type pizzaStatusStrategy struct{ strategy }

var (
	_ rest.RESTUpdateStrategy            = pizzaStatusStrategy{}
	_ rest.ResetFieldsStrategy           = pizzaStatusStrategy{}
	_ rest.DeclarativeValidationStrategy = pizzaStatusStrategy{}
)

// PrepareForUpdate keeps the metadata too, as for a custom resource
// (apiextensions-apiserver/pkg/registry/customresource/status_strategy.go).
func (pizzaStatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	pizza, before := obj.(*restaurant.Pizza), old.(*restaurant.Pizza)
	managedFields := pizza.ManagedFields
	pizza.Spec, pizza.ObjectMeta = before.Spec, before.ObjectMeta
	pizza.ManagedFields = managedFields
}

func (pizzaStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetPizza(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func resetPizza(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	fields := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, gv := range []string{v1alpha1.GroupVersion.String(), v1beta1.GroupVersion.String()} {
		fields[fieldpath.APIVersion(gv)] = fieldpath.NewSet(paths...)
	}
	return fields
}

// toppingStrategy writes toppings.
type toppingStrategy struct{ strategy }

var (
	_ rest.RESTCreateUpdateStrategy      = toppingStrategy{}
	_ rest.RESTDeleteStrategy            = toppingStrategy{}
	_ rest.DeclarativeValidationStrategy = toppingStrategy{}
)

func (toppingStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	obj.(*restaurant.Topping).Generation = 1
}

func (toppingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	topping, before := obj.(*restaurant.Topping), old.(*restaurant.Topping)
	if topping.Spec != before.Spec {
		topping.Generation = before.Generation + 1
	}
}

package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// NewScheme returns the kinds of the restaurant in the served versions and in the
// internal one, with conversions, defaults and validation.
func NewScheme() (*runtime.Scheme, error) {
	return scheme.New(
		scheme.Version(restaurant.GroupVersion, &restaurant.Pizza{}, &restaurant.PizzaList{}, &restaurant.Topping{}, &restaurant.ToppingList{}),
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}, &v1alpha1.Topping{}, &v1alpha1.ToppingList{}),
		scheme.Functions(addConversions, addDefaults, addValidation, addServerTypes),
	)
}

// NewRegistry returns the conversions of a scheme of [NewScheme] as crdkit knows them. The
// server does not need it; the proof of the conversions does.
func NewRegistry(s *runtime.Scheme) (*conversion.Registry, error) {
	reg := conversion.NewRegistry(s)
	for _, kind := range []string{"Pizza", "Topping"} {
		if err := conversion.AddSchemeFunctions(reg, restaurant.GroupVersion.WithKind(kind)); err != nil {
			return nil, err
		}
	}
	return reg, reg.Check()
}

// addServerTypes adds what k8s.io/apiserver encodes whatever it serves: options and
// answers of the core group.
func addServerTypes(s *runtime.Scheme) error {
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, core)
	s.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return nil
}

// storageVersions says in which version each kind is stored: in the preferred one of those
// that it has.
type storageVersions struct{ scheme *runtime.Scheme }

var _ runtime.GroupVersioner = storageVersions{}

func (storageVersions) Identifier() string { return "storage" }

func (v storageVersions) KindForGroupVersionKinds(kinds []schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	for _, kind := range kinds {
		for _, gv := range v.scheme.PrioritizedVersionsForGroup(kind.Group) {
			if stored := gv.WithKind(kind.Kind); v.scheme.Recognizes(stored) {
				return stored, true
			}
		}
	}
	return schema.GroupVersionKind{}, false
}

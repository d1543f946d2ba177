package apiserver

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
)

var (
	pizzaResource   = schema.GroupResource{Group: restaurant.GroupName, Resource: "pizzas"}
	toppingResource = schema.GroupResource{Group: restaurant.GroupName, Resource: "toppings"}
)

// pizzaREST serves pizzas from etcd.
type pizzaREST struct{ *registry.Store }

var (
	_ rest.StandardStorage    = pizzaREST{}
	_ rest.ShortNamesProvider = pizzaREST{}
	_ rest.CategoriesProvider = pizzaREST{}
)

// ShortNames are what kubectl also calls pizzas.
func (pizzaREST) ShortNames() []string { return []string{"pz"} }

// Categories are those of which pizzas are.
func (pizzaREST) Categories() []string { return []string{"restaurant"} }

// pizzaStatusREST serves the status of pizzas from the same place.
type pizzaStatusREST struct{ store *registry.Store }

var (
	_ rest.Patcher             = pizzaStatusREST{}
	_ rest.Storage             = pizzaStatusREST{}
	_ rest.ResetFieldsStrategy = pizzaStatusREST{}
	_ rest.TableConvertor      = pizzaStatusREST{}
)

func (pizzaStatusREST) New() runtime.Object { return &restaurant.Pizza{} }

// Destroy leaves the store to pizzaREST.
func (pizzaStatusREST) Destroy() {}

func (r pizzaStatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update never creates: a status has no life of its own.
func (r pizzaStatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, create, update, false, options)
}

func (r pizzaStatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

func (r pizzaStatusREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

// toppingREST serves toppings from etcd.
type toppingREST struct{ *registry.Store }

var (
	_ rest.StandardStorage    = toppingREST{}
	_ rest.CategoriesProvider = toppingREST{}
)

// Categories are those of which toppings are.
func (toppingREST) Categories() []string { return []string{"restaurant"} }

// newStorage returns the storage of each version. All versions of a resource share one
// store, and its watch cache: it holds internal objects.
func newStorage(s *runtime.Scheme, options generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	pizzas, status, pizzaErr := newPizzas(s, options)
	toppings, toppingErr := newToppings(s, options)
	if err := errors.Join(pizzaErr, toppingErr); err != nil {
		return nil, err
	}
	return map[string]map[string]rest.Storage{
		"v1alpha1": {"pizzas": pizzas, "pizzas/status": status, "toppings": toppings},
		"v1beta1":  {"pizzas": pizzas, "pizzas/status": status},
	}, nil
}

func newPizzas(s *runtime.Scheme, options generic.RESTOptionsGetter) (pizzaREST, pizzaStatusREST, error) {
	common := newStrategy(s, true)
	write, writeStatus := pizzaStrategy{common}, pizzaStatusStrategy{common}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &restaurant.Pizza{} },
		NewListFunc:               func() runtime.Object { return &restaurant.PizzaList{} },
		PredicateFunc:             matching,
		DefaultQualifiedResource:  pizzaResource,
		SingularQualifiedResource: schema.GroupResource{Group: restaurant.GroupName, Resource: "pizza"},
		CreateStrategy:            write,
		UpdateStrategy:            write,
		DeleteStrategy:            write,
		ResetFieldsStrategy:       write,
		TableConvertor:            pizzaTable{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes}); err != nil {
		return pizzaREST{}, pizzaStatusREST{}, err
	}
	status := *store
	status.UpdateStrategy, status.ResetFieldsStrategy = writeStatus, writeStatus
	return pizzaREST{store}, pizzaStatusREST{&status}, nil
}

func newToppings(s *runtime.Scheme, options generic.RESTOptionsGetter) (toppingREST, error) {
	write := toppingStrategy{newStrategy(s, false)}
	store := &registry.Store{
		NewFunc:                   func() runtime.Object { return &restaurant.Topping{} },
		NewListFunc:               func() runtime.Object { return &restaurant.ToppingList{} },
		PredicateFunc:             matching,
		DefaultQualifiedResource:  toppingResource,
		SingularQualifiedResource: schema.GroupResource{Group: restaurant.GroupName, Resource: "topping"},
		CreateStrategy:            write,
		UpdateStrategy:            write,
		DeleteStrategy:            write,
		TableConvertor:            toppingTable{},
	}
	return toppingREST{store}, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes})
}

// attributes are what selectors may ask for: labels, and the fields that every resource has.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(object)
	if !ok {
		return nil, nil, fmt.Errorf("apiserver: a %T has no metadata", obj)
	}
	m := metadata(o)
	return m.Labels, generic.ObjectMetaFieldsSet(m, m.Namespace != ""), nil
}

func matching(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
}

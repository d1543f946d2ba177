package apiserver

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
)

// pizzaTable says what kubectl get shows of pizzas. The cells are made by code, of the
// internal version: they are the same in each version that is asked for, and say more than
// a JSONPath can.
type pizzaTable struct{}

var _ rest.TableConvertor = pizzaTable{}

func (pizzaTable) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return newTable(obj, options, []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "What the pizza is called."},
		{Name: "Toppings", Type: "string", Description: "What is on the pizza."},
		{Name: "Cost", Type: "number", Description: "The cost of all toppings."},
		{Name: "Age", Type: "date", Description: "How long the pizza has been on the menu."},
	}, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		pizza, ok := obj.(*restaurant.Pizza)
		if !ok {
			return nil, fmt.Errorf("apiserver: %T is not a pizza", obj)
		}
		var cost any
		if pizza.Status.Cost != nil {
			cost = *pizza.Status.Cost
		}
		return []any{name, describe(pizza.Spec.Toppings), cost, age}, nil
	})
}

// describe writes toppings as a menu does: "tomato, mozzarella ×2".
func describe(toppings []restaurant.PizzaTopping) string {
	words := make([]string, len(toppings))
	for i, topping := range toppings {
		if words[i] = topping.Name; topping.Quantity != 1 {
			words[i] += fmt.Sprintf(" ×%d", topping.Quantity)
		}
	}
	return strings.Join(words, ", ")
}

// toppingTable says what kubectl get shows of toppings.
type toppingTable struct{}

var _ rest.TableConvertor = toppingTable{}

func (toppingTable) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return newTable(obj, options, []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "What the topping is called."},
		{Name: "Cost", Type: "number", Description: "The cost of one portion."},
		{Name: "Age", Type: "date", Description: "How long the topping has been there."},
	}, func(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
		topping, ok := obj.(*restaurant.Topping)
		if !ok {
			return nil, fmt.Errorf("apiserver: %T is not a topping", obj)
		}
		return []any{name, topping.Spec.Cost, age}, nil
	})
}

func newTable(obj, options runtime.Object, columns []metav1.TableColumnDefinition, row func(obj runtime.Object, m metav1.Object, name, age string) ([]any, error)) (*metav1.Table, error) {
	rows, err := table.MetaToTableRow(obj, row)
	if err != nil {
		return nil, err
	}
	t := &metav1.Table{Rows: rows}
	if list, err := meta.ListAccessor(obj); err == nil {
		t.ResourceVersion, t.Continue, t.RemainingItemCount = list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount()
	} else if one, err := meta.CommonAccessor(obj); err == nil {
		t.ResourceVersion = one.GetResourceVersion()
	}
	// The rows after the first of a watch repeat no columns (rest.defaultTableConvertor).
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		t.ColumnDefinitions = columns
	}
	return t, nil
}

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

func ExampleNewRegistry() {
	s, err := NewScheme()
	if err != nil {
		panic(err)
	}
	reg, err := NewRegistry(s)
	if err != nil {
		panic(err)
	}
	pizza := `{"apiVersion":"restaurant.programming-kubernetes.info/v1alpha1","kind":"Pizza","metadata":{"name":"p"},"spec":{"toppings":["salami","tomato","salami"]}}`
	converted, err := reg.Convert(context.Background(), []byte(pizza), v1beta1.GroupVersion)
	fmt.Println(string(converted), err)
	// Output: {"apiVersion":"restaurant.programming-kubernetes.info/v1beta1","kind":"Pizza","metadata":{"name":"p"},"spec":{"toppings":[{"name":"salami","quantity":2},{"name":"tomato","quantity":1}]}} <nil>
}

// A list converts with its items and its metadata.
func TestConversion_List(t *testing.T) {
	s := newTestScheme(t)
	remaining := int64(7)
	list := &v1alpha1.PizzaList{
		ListMeta: metav1.ListMeta{ResourceVersion: "5", Continue: "more", RemainingItemCount: &remaining},
		Items:    []v1alpha1.Pizza{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.PizzaSpec{Toppings: []string{"a", "a"}}}},
	}
	got, err := s.ConvertToVersion(list, restaurant.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	want := &restaurant.PizzaList{
		ListMeta: list.ListMeta,
		Items:    []restaurant.Pizza{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: restaurant.PizzaSpec{Toppings: []restaurant.PizzaTopping{{Name: "a", Quantity: 2}}}}},
	}
	if diff := cmp.Diff(runtime.Object(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const toAlpha = " from restaurant.programming-kubernetes.info/__internal to restaurant.programming-kubernetes.info/v1alpha1: "

// A list with an item that cannot be converted is an error.
func TestConversion_ListWithBadItem(t *testing.T) {
	list := &restaurant.PizzaList{Items: []restaurant.Pizza{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"},
		Spec:       restaurant.PizzaSpec{Toppings: []restaurant.PizzaTopping{{Name: "a"}}},
	}}}
	_, err := newTestScheme(t).ConvertToVersion(list, v1alpha1.GroupVersion)
	if want := "cannot convert Pizza default/x" + toAlpha + "spec.toppings[0].quantity: Invalid value: 0: must be at least 1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A billion portions do not become a billion names.
// A quantity may come from before there were bounds; a billion names would not fit anywhere.
func TestConversion_BillionPortions(t *testing.T) {
	pizza := &restaurant.Pizza{Spec: restaurant.PizzaSpec{Toppings: []restaurant.PizzaTopping{{Name: "a", Quantity: 1}, {Name: "b", Quantity: 1e9}}}}
	_, err := newTestScheme(t).ConvertToVersion(pizza, v1alpha1.GroupVersion)
	if want := "cannot convert Pizza" + toAlpha + "spec.toppings[1].quantity: Invalid value: 1000000000: v1alpha1 lists at most 2097152 portions of toppings"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The shortest list of names is YAML, of two bytes a name. As long as a request may be, it can
// be converted back, and be refused for its length.
func TestConversion_LongestRequest(t *testing.T) {
	const longest = 3 << 20 // apiserver/pkg/server.NewConfig, MaxRequestBodyBytes
	s := newTestScheme(t)
	pizza := &v1alpha1.Pizza{Spec: v1alpha1.PizzaSpec{Toppings: slices.Repeat([]string{"a"}, longest/len("a,"))}}
	hub, err := s.ConvertToVersion(pizza, restaurant.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	back, err := s.ConvertToVersion(hub, v1alpha1.GroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(back.(*v1alpha1.Pizza).Spec.Toppings), len(pizza.Spec.Toppings); got != want {
		t.Errorf("of %d names come %d back", want, got)
	}
}

package scheme_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/scheme"
)

// The first scheme has two versions. The second one lacks a list, which is an error.
func ExampleNew() {
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(s.PrioritizedVersionsForGroup(v1beta1.GroupVersion.Group))

	_, err = scheme.New(scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}))
	fmt.Println(err)
	// Output:
	// [restaurant.programming-kubernetes.info/v1beta1 restaurant.programming-kubernetes.info/v1alpha1]
	// scheme: restaurant.programming-kubernetes.info/v1beta1: kind Pizza has no list: register PizzaList too
}

// A scheme that was not built by New lacks a list.
func ExampleCheck() {
	s := runtime.NewScheme()
	s.AddKnownTypes(v1beta1.GroupVersion, &v1beta1.Pizza{})
	fmt.Println(scheme.Check(s))
	// Output:
	// scheme: restaurant.programming-kubernetes.info/v1beta1: kind Pizza has no list: register PizzaList too
	// scheme: restaurant.programming-kubernetes.info/v1beta1: has no ListOptions: call metav1.AddToGroupVersion
}

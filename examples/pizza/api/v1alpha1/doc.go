// Package v1alpha1 is the first version of the restaurant's API: pizzas whose
// toppings are plain names, and the toppings that there are.
//
// +kubebuilder:object:generate=true
// +groupName=restaurant.programming-kubernetes.info
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "restaurant.programming-kubernetes.info", Version: "v1alpha1"}

// Package v1alpha1 contains the first version of the restaurant's API. It has the kind Pizza, whose
// toppings are plain names, and the kind Topping.
//
// +kubebuilder:object:generate=true
// +groupName=restaurant.programming-kubernetes.info
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "restaurant.programming-kubernetes.info", Version: "v1alpha1"}

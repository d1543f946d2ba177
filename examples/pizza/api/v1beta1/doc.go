// Package v1beta1 contains the second version of the restaurant's API, in which the toppings of
// a pizza have quantities. It is the hub and the storage version.
//
// +kubebuilder:object:generate=true
// +groupName=restaurant.programming-kubernetes.info
package v1beta1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "restaurant.programming-kubernetes.info", Version: "v1beta1"}

// Package v1beta1 is the second version of the restaurant's API: the toppings of
// a pizza have quantities. It is the hub, and the version that is stored.
//
// +kubebuilder:object:generate=true
// +groupName=restaurant.programming-kubernetes.info
package v1beta1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "restaurant.programming-kubernetes.info", Version: "v1beta1"}

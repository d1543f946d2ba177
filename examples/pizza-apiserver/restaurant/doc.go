// Package restaurant has the internal version of the restaurant's API: the hub through
// which the versions that users see convert into each other, and what the server itself
// works with. It is never encoded, so its fields have no JSON tags.
//
// It need not be like any served version. Here a topping always has a quantity: what
// v1alpha1 says by repetition and v1beta1 by a default is a plain number.
//
// +kubebuilder:object:generate=true
package restaurant

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the restaurant.
const GroupName = "restaurant.programming-kubernetes.info"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

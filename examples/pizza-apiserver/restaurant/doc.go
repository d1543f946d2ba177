// Package restaurant contains the internal version of the restaurant's API. The server works
// with this version, and it is the hub through which the served versions are converted. It
// is never encoded, so its fields have no JSON tags.
//
// The internal version can differ from every served version. For example, a topping always
// has a quantity here: v1alpha1 expresses the quantity by repeating the topping, and v1beta1
// has a default for it.
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

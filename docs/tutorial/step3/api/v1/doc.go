// Package v1 is the second version of the library's API: the authors of a book are objects.
// It is the hub, through which versions convert.
//
// +kubebuilder:object:generate=true
// +groupName=library.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "library.example.com", Version: "v1"}

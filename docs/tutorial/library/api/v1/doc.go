// Package v1 is the version of the library's API in which authors are objects.
//
// +kubebuilder:object:generate=true
// +groupName=library.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "library.example.com", Version: "v1"}

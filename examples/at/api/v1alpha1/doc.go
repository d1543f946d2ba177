// Package v1alpha1 contains the API of commands that run once, at a given time.
//
// +kubebuilder:object:generate=true
// +groupName=cnat.example.com
package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion of the types in this package.
var GroupVersion = schema.GroupVersion{Group: "cnat.example.com", Version: "v1alpha1"}

// Package caches has the markers of the page about troubleshooting.
//
// +kubebuilder:object:generate=true
// +groupName=example.com
// +versionName=v1
package caches

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cache is the example.
//
// +kubebuilder:object:root=true
type Cache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec CacheSpec `json:"spec,omitzero"`
}

// CacheSpec has each type with markers, and without.
type CacheSpec struct {
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Memory resource.Quantity `json:"memory"`

	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:Pattern=`^-?([0-9]{1,6}(\.[0-9]{1,6})?(h|m|s|ms|us|µs|ns)|([0-9]{1,6}h)?([0-5]?[0-9]m)?([0-5]?[0-9](\.[0-9]{1,9})?s)?)$`
	Timeout metav1.Duration `json:"timeout"`

	// +optional
	Plain resource.Quantity `json:"plain,omitzero"`
}

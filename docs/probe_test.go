package docs_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The types of testdata/probes.yaml. Conversions need no copies of them.
type (
	alphaProbe struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              *alphaProbeSpec `json:"spec,omitempty"`
		Status            *probeStatus    `json:"status,omitempty"`
	}
	alphaProbeSpec struct {
		Color string `json:"color,omitempty"`
		Note  string `json:"note,omitempty"`
		Seen  int    `json:"seen,omitempty"`
		Old   string `json:"old,omitempty"`
	}
	probe struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              *probeSpec   `json:"spec,omitempty"`
		Status            *probeStatus `json:"status,omitempty"`
	}
	probeSpec struct {
		Colour string `json:"colour,omitempty"`
		Note   string `json:"note,omitempty"`
		Seen   int    `json:"seen,omitempty"`
		Size   string `json:"size,omitempty"`
	}
	probeStatus struct {
		Phase string `json:"phase,omitempty"`
	}
)

func (*alphaProbe) DeepCopyObject() runtime.Object { panic("conversion must not copy") }
func (*probe) DeepCopyObject() runtime.Object      { panic("conversion must not copy") }

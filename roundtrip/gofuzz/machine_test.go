package gofuzz_test

import (
	"context"
	"slices"
	"testing"

	fuzz "github.com/google/gofuzz"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// Machine is the test kind, with functions in the style of providers of Cluster API 1.0.
type (
	oldMachine struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              oldSpec `json:"spec"`
	}
	newMachine struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              newSpec `json:"spec"`
	}
	oldSpec struct {
		Common   `json:",inline"`
		MinCPU   *int  `json:"minCPU,omitempty"`
		FailFast *bool `json:"failFast,omitempty"` // is gone in the new version
	}
	newSpec struct {
		Common `json:",inline"`
		MinCPU int `json:"minCPU"` // must be there
	}
	// Common has an exported name because only exported fields are filled.
	Common struct {
		Provider string                `json:"provider,omitempty"`
		Memory   resource.Quantity     `json:"memory,omitempty"`
		Taints   []taint               `json:"taints,omitempty"`
		Labels   nodeLabels            `json:"labels,omitempty"`
		Template *metav1.ObjectMeta    `json:"template,omitempty"`
		Drain    *metav1.Time          `json:"drain,omitempty"`
		Surge    *intstr.IntOrString   `json:"surge,omitempty"`
		Value    *apiextensionsv1.JSON `json:"value,omitempty"`
		Extra    runtime.RawExtension  `json:"extra,omitzero"`
	}
	taint struct {
		Key    string `json:"key"`
		Effect effect `json:"effect"`
	}
	effect     string
	nodeLabels map[string]string
)

func (c *Common) copy() Common {
	out := *c
	out.Memory = c.Memory.DeepCopy()
	out.Taints = slices.Clone(c.Taints)
	if c.Labels != nil {
		out.Labels = nodeLabels{}
	}
	for k, v := range c.Labels {
		out.Labels[k] = v
	}
	out.Template, out.Drain, out.Value, out.Extra = c.Template.DeepCopy(), c.Drain.DeepCopy(), c.Value.DeepCopy(), *c.Extra.DeepCopy()
	if c.Surge != nil {
		out.Surge = new(*c.Surge)
	}
	return out
}

func (m *oldMachine) DeepCopyObject() runtime.Object {
	out := &oldMachine{m.TypeMeta, *m.ObjectMeta.DeepCopy(), oldSpec{Common: m.Spec.copy()}}
	if m.Spec.MinCPU != nil {
		out.Spec.MinCPU = new(*m.Spec.MinCPU)
	}
	if m.Spec.FailFast != nil {
		out.Spec.FailFast = new(*m.Spec.FailFast)
	}
	return out
}

func (m *newMachine) DeepCopyObject() runtime.Object {
	return &newMachine{m.TypeMeta, *m.ObjectMeta.DeepCopy(), newSpec{Common: m.Spec.copy(), MinCPU: m.Spec.MinCPU}}
}

func toNew(_ context.Context, in *oldMachine, out *newMachine) error {
	out.Spec.Common = in.Spec.copy()
	if in.Spec.MinCPU != nil {
		out.Spec.MinCPU = *in.Spec.MinCPU
	}
	return nil
}

func toOld(_ context.Context, in *newMachine, out *oldMachine) error {
	out.Spec.Common = in.Spec.copy()
	out.Spec.MinCPU = new(in.Spec.MinCPU)
	return nil
}

// machines returns the conversions of machines.
func machines(t *testing.T, toOld func(context.Context, *newMachine, *oldMachine) error) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	kind := schema.GroupKind{Group: "infrastructure.example.com", Kind: "Machine"}
	s.AddKnownTypeWithName(kind.WithVersion("v1alpha4"), &oldMachine{})
	s.AddKnownTypeWithName(kind.WithVersion("v1beta1"), &newMachine{})
	reg := conversion.NewRegistry(s)
	expect.NoError(t, conversion.AddSpoke(reg, toNew, toOld))
	return reg
}

// machineFuncs are what an operator has in its tests.
func machineFuncs(serializer.CodecFactory) []any {
	return []any{
		oldMachineFuzzer,
		specFuzzer,
		taintFuzzer,
		func(e *effect, c fuzz.Continue) {
			*e = []effect{"NoExecute", "NoSchedule", "PreferNoSchedule"}[c.Intn(3)]
		},
		func(l nodeLabels, c fuzz.Continue) { // a map is made for the function
			for range c.Intn(3) {
				l["node.example.com/"+string(rune('a'+c.Intn(26)))] = ""
			}
		},
	}
}

func oldMachineFuzzer(m *oldMachine, c fuzz.Continue) {
	c.FuzzNoCustom(m)
	// MinCPU must be there in v1beta1.
	if m.Spec.MinCPU == nil {
		m.Spec.MinCPU = new(4)
	}
	// FailFast has been removed in v1beta1.
	m.Spec.FailFast = nil
}

func specFuzzer(s *Common, c fuzz.Continue) {
	c.FuzzNoCustom(s)
	s.Provider = "example://" + c.RandString()
	if c.RandBool() {
		s.Drain = nil
	}
	if len(s.Taints) == 0 {
		s.Taints = nil // as is absence in JSON
	}
	if len(s.Labels) == 0 {
		s.Labels = nil
	}
}

// taintFuzzer has a second function for its parts.
func taintFuzzer(t *taint, c fuzz.Continue) {
	t.Key = "example.com/taint"
	c.Fuzz(&t.Effect)
}

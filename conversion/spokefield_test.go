package conversion_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/roundtrip"
)

// A jobV1alpha1 has a phase in its status, which jobV1 does not have any longer.
type jobV1alpha1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Status            struct {
		Phase string `json:"phase,omitempty"`
		Done  bool   `json:"done,omitempty"`
	} `json:"status,omitzero"`
}

type jobV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Status            struct {
		Done bool `json:"done,omitempty"`
	} `json:"status,omitzero"`
}

func (j *jobV1alpha1) DeepCopyObject() runtime.Object {
	out := *j
	out.ObjectMeta = *j.ObjectMeta.DeepCopy()
	return &out
}

func (j *jobV1) DeepCopyObject() runtime.Object {
	out := *j
	out.ObjectMeta = *j.ObjectMeta.DeepCopy()
	return &out
}

const phaseAnnotation = "example.com/v1alpha1-phase"

func jobToHub(_ context.Context, in *jobV1alpha1, out *jobV1) error {
	out.Status.Done = in.Status.Done
	if in.Status.Phase != "" {
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, phaseAnnotation, in.Status.Phase)
	}
	return nil
}

func jobFromHub(_ context.Context, in *jobV1, out *jobV1alpha1) error {
	out.Status.Done = in.Status.Done
	if phase := in.Annotations[phaseAnnotation]; phase != "" {
		out.Status.Phase = phase
		delete(out.Annotations, phaseAnnotation)
	}
	return nil
}

// derivedFromHub returns the phase that follows from the rest of the status.
func derivedFromHub(_ context.Context, in *jobV1, out *jobV1alpha1) error {
	out.Status.Done = in.Status.Done
	out.Status.Phase = phaseOf(in.Status.Done)
	return nil
}

func phaseOf(done bool) string {
	if done {
		return "Succeeded"
	}
	return "Running"
}

func jobs(toHub func(context.Context, *jobV1alpha1, *jobV1) error, fromHub func(context.Context, *jobV1, *jobV1alpha1) error) *conversion.Registry {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Job"}, &jobV1alpha1{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Job"}, &jobV1{})
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, toHub, fromHub); err != nil {
		panic(err)
	}
	return reg
}

// A field that only the spoke has is stored in an annotation of the hub.
func ExampleAddSpoke_fieldOfSpoke() {
	reg := jobs(jobToHub, jobFromHub)
	spoke := []byte(`{"apiVersion":"example.com/v1alpha1","kind":"Job","metadata":{"name":"a"},"status":{"phase":"Running"}}`)
	hub, err := reg.Convert(context.Background(), spoke, schema.GroupVersion{Group: "example.com", Version: "v1"})
	fmt.Println(string(hub), err)
	back, err := reg.Convert(context.Background(), hub, schema.GroupVersion{Group: "example.com", Version: "v1alpha1"})
	fmt.Println(string(back), err)
	// Output:
	// {"apiVersion":"example.com/v1","kind":"Job","metadata":{"name":"a","annotations":{"example.com/v1alpha1-phase":"Running"}}} <nil>
	// {"apiVersion":"example.com/v1alpha1","kind":"Job","metadata":{"name":"a"},"status":{"phase":"Running"}} <nil>
}

func TestAddSpoke_FieldOfSpoke(t *testing.T) {
	t.Run("stored", func(t *testing.T) { roundtrip.Test(t, jobs(jobToHub, jobFromHub)) })
	t.Run("derived", func(t *testing.T) {
		toHub := func(_ context.Context, in *jobV1alpha1, out *jobV1) error {
			out.Status.Done = in.Status.Done
			return nil
		}
		roundtrip.Test(t, jobs(toHub, derivedFromHub), roundtrip.Normalize("the phase follows from the rest of the status", func(j *jobV1alpha1) {
			j.Status.Phase = phaseOf(j.Status.Done)
		}))
	})
}

package roundtrip

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/expect"
)

// A workload is as large as types of operators become: a list of pod templates.
type (
	workload struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              workloadSpec `json:"spec,omitzero"`
	}
	workloadV1   workload
	workloadSpec struct {
		PodSets []podSet `json:"podSets,omitempty"`
		Queue   string   `json:"queue,omitempty"`
	}
	podSet struct {
		Name     string                 `json:"name,omitempty"`
		Template corev1.PodTemplateSpec `json:"template,omitzero"`
		Count    *int32                 `json:"count,omitempty"`
	}
)

func (w *workload) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec = w.Spec.copy()
	return &out
}

func (w *workloadV1) DeepCopyObject() runtime.Object {
	return (*workloadV1)((*workload)(w).DeepCopyObject().(*workload))
}

func (s *workloadSpec) copy() workloadSpec {
	out := *s
	if s.PodSets != nil {
		out.PodSets = make([]podSet, len(s.PodSets))
	}
	for i, p := range s.PodSets {
		out.PodSets[i] = podSet{Name: p.Name, Template: *p.Template.DeepCopy()}
		if p.Count != nil {
			out.PodSets[i].Count = new(*p.Count)
		}
	}
	return out
}

func workloads(t *testing.T, change func(p *podSet)) *conversion.Registry {
	return twins(t, fleet.WithKind("Workload"), func(in *workload, out *workloadV1) {
		out.Spec = in.Spec.copy()
		for i := range out.Spec.PodSets {
			change(&out.Spec.PodSets[i])
		}
	}, func(in *workloadV1, out *workload) { out.Spec = in.Spec.copy() })
}

var fleet = schema.GroupVersion{Group: "fleet.example.com", Version: "v1beta1"}

// twins returns the conversions between a spoke and v1, which have types of the same form.
func twins[Spoke, V1 runtime.Object](t *testing.T, spoke schema.GroupVersionKind, toHub func(in Spoke, out V1), fromHub func(in V1, out Spoke)) *conversion.Registry {
	t.Helper()
	s := runtime.NewScheme()
	for version, t := range map[string]reflect.Type{spoke.Version: reflect.TypeFor[Spoke](), "v1": reflect.TypeFor[V1]()} {
		s.AddKnownTypeWithName(spoke.GroupKind().WithVersion(version), reflect.New(t.Elem()).Interface().(runtime.Object))
	}
	reg := conversion.NewRegistry(s)
	err := conversion.AddSpoke(reg,
		func(_ context.Context, in Spoke, out V1) error { toHub(in, out); return nil },
		func(_ context.Context, in V1, out Spoke) error { fromHub(in, out); return nil })
	expect.NoError(t, err)
	return reg
}

// Most of what is in an object of a large type has nothing to do with a fault.
func TestShrink_LargeType(t *testing.T) {
	for name, change := range map[string]func(p *podSet){
		"a count": func(p *podSet) { p.Count = nil },
		"a member of a container": func(p *podSet) {
			for i := range p.Template.Spec.Containers {
				p.Template.Spec.Containers[i].LivenessProbe = nil
			}
		},
		"a volume": func(p *podSet) {
			for i := range p.Template.Spec.Volumes {
				p.Template.Spec.Volumes[i].Projected = nil
			}
		},
		"the last of several": func(p *podSet) {
			if n := len(p.Template.Spec.InitContainers); n > 1 {
				p.Template.Spec.InitContainers = p.Template.Spec.InitContainers[:n-1]
			}
		},
	} {
		t.Run(name, func(t *testing.T) { shrinksTo(t, 30, workloads(t, change)) })
	}
}

// shrinksTo fails unless the way from the first version and back is broken, and the smallest
// objects that show it have so many lines at most.
func shrinksTo(t *testing.T, lines int, reg *conversion.Registry) {
	t.Helper()
	for seed := range seeds() {
		cfg, err := newConfigFor(reg, []Option{Seed(seed), Iterations(300)})
		expect.NoError(t, err)
		c, err := subjects(reg, cfg, reg.Kinds()[0])[0].search(t.Context(), cfg.budget(1))
		if err != nil || c == nil {
			t.Fatalf("seed %d: got %v, %v", seed, c, err)
		}
		n := strings.Count(c.yaml(), "\n")
		t.Logf("seed %d: %d lines after %d tries, object %d", seed, n, c.tried, c.iteration)
		if n > lines || c.subject.law != RoundTrip {
			t.Errorf("seed %d: %s: %d lines:\n%s", seed, c.subject, n, c.yaml())
		}
	}
}

// A class has variables with schemas, which have schemas in four of their fields.
type (
	class struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Variables         []Variable `json:"variables,omitempty"`
	}
	classV1  class
	Variable struct {
		Name   string `json:"name,omitempty"`
		Schema Schema `json:"schema"` // an empty map of a schema is not written
	}
	Schema struct {
		Type        string            `json:"type,omitempty"`
		Description string            `json:"description,omitempty"`
		Required    []string          `json:"required,omitempty"`
		MaxLength   *int64            `json:"maxLength,omitempty"`
		Properties  map[string]Schema `json:"properties,omitempty"`
		AllOf       []Schema          `json:"allOf,omitempty"`
		Items       *Schema           `json:"items,omitempty"`
		Others      *Schema           `json:"additionalProperties,omitempty"`
	}
)

func (c *class) DeepCopyObject() runtime.Object {
	out := &class{c.TypeMeta, *c.ObjectMeta.DeepCopy(), slices.Clone(c.Variables)}
	for i := range out.Variables {
		out.Variables[i].Schema = *out.Variables[i].Schema.copy()
	}
	return out
}

func (s *Schema) copy() *Schema {
	if s == nil {
		return nil
	}
	out := &Schema{s.Type, s.Description, slices.Clone(s.Required), nil, maps.Clone(s.Properties), slices.Clone(s.AllOf), s.Items.copy(), s.Others.copy()}
	if s.MaxLength != nil {
		out.MaxLength = new(*s.MaxLength)
	}
	for name, p := range out.Properties {
		out.Properties[name] = *p.copy()
	}
	for i := range out.AllOf {
		out.AllOf[i] = *s.AllOf[i].copy()
	}
	return out
}

func (c *classV1) DeepCopyObject() runtime.Object {
	return (*classV1)((*class)(c).DeepCopyObject().(*class))
}

// withoutMaxLength returns a schema without the limits that are deeper than two.
func withoutMaxLength(s *Schema, depth int) *Schema {
	if s == nil {
		return nil
	}
	if depth > 2 {
		s.MaxLength = nil
	}
	for name, p := range s.Properties {
		s.Properties[name] = *withoutMaxLength(&p, depth+1)
	}
	for i := range s.AllOf {
		withoutMaxLength(&s.AllOf[i], depth+1)
	}
	withoutMaxLength(s.Items, depth+1)
	withoutMaxLength(s.Others, depth+1)
	return s
}

// classes returns conversions that lose limits deeper than two, or nothing.
func classes(t *testing.T, lossy bool) *conversion.Registry {
	return twins(t, fleet.WithKind("Class"), func(in *class, out *classV1) {
		out.Variables = in.DeepCopyObject().(*class).Variables
		for i := range out.Variables {
			if lossy {
				withoutMaxLength(&out.Variables[i].Schema, 0)
			}
		}
	}, func(in *classV1, out *class) { out.Variables = in.DeepCopyObject().(*classV1).Variables })
}

func TestTest_RecursiveTypeEnds(t *testing.T) {
	reg := classes(t, false)
	Test(t, reg, Iterations(30))
	TestScheme(t, reg.Scheme(), Iterations(30))
}

// Objects of a type that contains itself in several places do not grow beyond measure.
func TestShrink_RecursiveType(t *testing.T) { shrinksTo(t, 20, classes(t, true)) }

package roundtrip

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/typecrd"
)

// Workers is a kind of the size that operators' kinds have: both versions have a pod template.
type (
	workersSpec struct {
		Replicas int32                  `json:"replicas,omitempty"`
		Template corev1.PodTemplateSpec `json:"template,omitzero"`
	}
	workersAlpha struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              workersSpec `json:"spec,omitzero"`
	}
	workers workersAlpha
)

func (w *workersAlpha) DeepCopyObject() runtime.Object {
	return &workersAlpha{w.TypeMeta, *w.ObjectMeta.DeepCopy(), workersSpec{w.Spec.Replicas, *w.Spec.Template.DeepCopy()}}
}

func (w *workers) DeepCopyObject() runtime.Object {
	return (*workers)((*workersAlpha)(w).DeepCopyObject().(*workersAlpha))
}

var workersKind = kubeschema.GroupKind{Group: "example.com", Kind: "Workers"}

// podBug is what is wrong with the conversion of the pod template to the hub, after it has been copied.
type podBug struct {
	name  string
	law   Law
	spoil func(in, out *corev1.PodTemplateSpec)
}

// containers calls f for each container, and inits for each init container.
func containers(f func(in, out *corev1.Container)) func(in, out *corev1.PodTemplateSpec) {
	return func(in, out *corev1.PodTemplateSpec) {
		for i := range out.Spec.Containers {
			f(&in.Spec.Containers[i], &out.Spec.Containers[i])
		}
	}
}

var podBugs = []podBug{
	{"dropped init containers", RoundTrip, func(_, out *corev1.PodTemplateSpec) { out.Spec.InitContainers = nil }},
	{"sidecar becomes an init container", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		for i := range out.Spec.InitContainers {
			out.Spec.InitContainers[i].RestartPolicy = nil
		}
	}},
	{"absent security context becomes empty", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		out.Spec.SecurityContext = cmp.Or(out.Spec.SecurityContext, &corev1.PodSecurityContext{})
	}},
	{"lost grace period of 0", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		if p := out.Spec.TerminationGracePeriodSeconds; p != nil && *p == 0 {
			out.Spec.TerminationGracePeriodSeconds = nil
		}
	}},
	{"lost automount: false", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		if m := out.Spec.AutomountServiceAccountToken; m != nil && !*m {
			out.Spec.AutomountServiceAccountToken = nil
		}
	}},
	{"only the first preferred affinity", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		if a := out.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			terms := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
			*terms = (*terms)[:min(1, len(*terms))]
		}
	}},
	{"lost matchLabelKeys", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		for i := range out.Spec.TopologySpreadConstraints {
			out.Spec.TopologySpreadConstraints[i].MatchLabelKeys = nil
		}
	}},
	{"sorted tolerations of the input", InputUntouched, func(in, _ *corev1.PodTemplateSpec) {
		slices.SortFunc(in.Spec.Tolerations, func(a, b corev1.Toleration) int { return cmp.Compare(a.Key, b.Key) })
	}},
	{"aliased node selector", Aliasing, func(in, out *corev1.PodTemplateSpec) { out.Spec.NodeSelector = in.Spec.NodeSelector }},
	{"lost mode of a projected volume", RoundTrip, func(_, out *corev1.PodTemplateSpec) {
		for _, v := range out.Spec.Volumes {
			if v.Projected != nil {
				v.Projected.DefaultMode = nil
			}
		}
	}},
	{"lost optional of a Secret reference", RoundTrip, containers(func(_, out *corev1.Container) {
		for _, e := range out.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				e.ValueFrom.SecretKeyRef.Optional = nil
			}
		}
	})},
	{"merged mounts of one volume", RoundTrip, containers(func(_, out *corev1.Container) {
		out.VolumeMounts = slices.CompactFunc(out.VolumeMounts, func(a, b corev1.VolumeMount) bool { return a.Name == b.Name })
	})},
	{"named probe port becomes a number", RoundTrip, containers(func(_, out *corev1.Container) {
		if p := out.LivenessProbe; p != nil && p.HTTPGet != nil {
			p.HTTPGet.Port = intstr.FromInt32(int32(p.HTTPGet.Port.IntValue()))
		}
	})},
	{"lost resource claims", RoundTrip, containers(func(_, out *corev1.Container) { out.Resources.Claims = nil })},
}

// registry returns the conversions with the bug; with none if it is zero.
func (b podBug) registry(t *testing.T) *conversion.Registry {
	return twins(t, workersKind.WithVersion("v1alpha1"), func(in *workersAlpha, out *workers) {
		out.Spec = (*workers)(in).DeepCopyObject().(*workers).Spec
		if b.spoil != nil {
			b.spoil(&in.Spec.Template, &out.Spec.Template)
		}
	}, func(in *workers, out *workersAlpha) { out.Spec = in.DeepCopyObject().(*workers).Spec })
}

// podCatalogue has each bug twice: objects are made of the Go type, and of a definition.
func podCatalogue() (all []planted) {
	definition := CRD(typecrd.Of(workersKind, reflect.TypeFor[workers](), "v1alpha1", "v1"))
	for _, b := range podBugs {
		for variant, opts := range map[string][]Option{"": nil, "with a definition": {definition}} {
			find := func(t *testing.T, seed uint64) *counterexample {
				return findIn(t, b.registry(t), b.law, append([]Option{Seed(seed)}, opts...)...)[b.law]
			}
			all = append(all, planted{name: b.name, variant: variant, law: b.law, lines: 30, find: find})
		}
	}
	slices.SortFunc(all, func(a, b planted) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.variant, b.variant)) })
	return all
}

// A correct conversion of a pod template violates no law.
func TestLaws_NoBugInPodTemplates(t *testing.T) {
	definition := CRD(typecrd.Of(workersKind, reflect.TypeFor[workers](), "v1alpha1", "v1"))
	for _, opts := range [][]Option{nil, {definition}} {
		for _, c := range findIn(t, podBug{}.registry(t), "", append(opts, Iterations(100))...) {
			t.Error(c.report())
		}
	}
}

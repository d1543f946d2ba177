package listmapkeys

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestOfType(t *testing.T) {
	type Step struct {
		Name  string `json:"name"`
		Steps []Step `json:"steps" patchMergeKey:"name"`
	}
	pod, steps := OfType(reflect.TypeFor[corev1.Pod]()), OfType(reflect.TypeFor[Step]())
	for path, want := range map[string][]string{
		"spec.containers":              {"name"},
		"spec.containers.ports":        {"containerPort", "protocol"},
		"spec.containers.volumeMounts": {"mountPath"},
		"spec.containers.args":         nil,
		"metadata.ownerReferences":     {"uid"},
		"status.conditions":            {"type"},
		"nothing":                      nil,
	} {
		if diff := cmp.Diff(want, pod.At(strings.Split(path, "."))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if got := steps.At([]string{"steps", "steps", "steps"}); len(got) != 1 {
		t.Errorf("a recursive type has the keys %q", got)
	}

	declared := OfSchema(map[string]any{"properties": map[string]any{"spec": map[string]any{"properties": map[string]any{
		"containers": map[string]any{"x-kubernetes-list-map-keys": []any{"image"}}}}}})
	both := declared.Over(pod)
	if got := both.At([]string{"spec", "containers"}); got[0] != "image" {
		t.Errorf("what is declared does not count: %q", got)
	}
	if got := both.At([]string{"spec", "containers", "ports"}); len(got) != 2 {
		t.Errorf("below what is declared, the type does not count: %q", got)
	}
}

// A field hides those of an embedded struct, wherever it is, and an embedded map is a field.
func TestOfType_Embedded(t *testing.T) {
	type (
		Step struct{ Name, ID string }
		Base struct {
			Steps []Step `json:"steps" patchMergeKey:"Name"`
			Other []Step `json:"other" patchMergeKey:"Name"`
		}
		Labels map[string]string
	)
	tree := OfType(reflect.TypeFor[struct {
		Steps []Step `json:"steps" patchMergeKey:"ID"`
		Base
		Labels
	}]())
	for name, want := range map[string][]string{"steps": {"ID"}, "other": {"Name"}} {
		if diff := cmp.Diff(want, tree.At([]string{name})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if tree.IsMap() || !tree.Field([]byte("Labels")).IsMap() {
		t.Error("an embedded map is not taken for a field")
	}
}

package testobj_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/crdkit/crdkit/test/testobj"
)

const pod = `apiVersion: v1
kind: Pod
metadata: {name: a, generation: 1}
spec: {priority: 2}
`

func TestParse_Objects(t *testing.T) {
	u := testobj.Parse(t, pod)
	if got := fmt.Sprintf("%s %d %T", u.GetName(), u.GetGeneration(), u.Object["spec"].(map[string]any)["priority"]); got != "a 1 int64" {
		t.Errorf("got %s, want a 1 int64", got)
	}
	if got := testobj.As[corev1.Pod](t, pod); *got.Spec.Priority != 2 {
		t.Errorf("got %v, want priority 2", got.Spec)
	}
	all := testobj.ParseAll(t, []byte("---\n"+pod+"---\n# nothing\n---\n"+pod))
	if diff := cmp.Diff([]any{u.Object, u.Object}, []any{all[0].Object, all[1].Object}); diff != "" || len(all) != 2 {
		t.Errorf("got %d objects, want 2 (-want +got):\n%s", len(all), diff)
	}
}

func TestField_Path(t *testing.T) {
	u := testobj.Parse(t, pod)
	for want, got := range map[string]string{
		`{"priority":2}`: testobj.Field(t, u, "spec"),
		`2`:              testobj.Field(t, []byte(`{"spec":{"priority":2}}`), "spec", "priority"),
		`null`:           testobj.Field(t, u, "spec", "replicas"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

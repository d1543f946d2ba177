package apiserver

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// The API server is told whom to trust, and which version to prefer.
func TestManifests_APIServices(t *testing.T) {
	type service struct{ name, ca, priority, port any }
	want := []service{
		{"v1alpha1.restaurant.programming-kubernetes.info", "Q0E=", int64(10), int64(8443)},
		{"v1beta1.restaurant.programming-kubernetes.info", "Q0E=", int64(20), int64(8443)},
	}
	var got []service
	for _, o := range documents(t, []byte("CA"), 8443) {
		if o.GetKind() != "APIService" {
			continue
		}
		spec := o.Object["spec"].(map[string]any)
		got = append(got, service{o.GetName(), spec["caBundle"], spec["versionPriority"], spec["service"].(map[string]any)["port"]})
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(service{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The Service has the port that the APIServices name.
func TestManifests_ServicePort(t *testing.T) {
	for _, port := range []int32{443, 8443} {
		ports := map[string]any{}
		for _, o := range documents(t, []byte("CA"), port) {
			spec, _ := o.Object["spec"].(map[string]any)
			switch o.GetKind() {
			case "Service":
				ports[o.GetName()] = spec["ports"]
			case "APIService":
				ports[o.GetName()] = spec["service"].(map[string]any)["port"]
			}
		}
		want := map[string]any{
			"pizza-apiserver": []any{map[string]any{"port": int64(port), "targetPort": int64(443)}},
			"v1alpha1.restaurant.programming-kubernetes.info": int64(port),
			"v1beta1.restaurant.programming-kubernetes.info":  int64(port),
		}
		if diff := cmp.Diff(want, ports); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Without a CA bundle, there are only permissions.
func TestManifests_NoCABundle(t *testing.T) {
	kinds := map[string]int{}
	for _, o := range documents(t, nil, 443) {
		kinds[o.GetKind()]++
	}
	want := map[string]int{"Namespace": 1, "ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 2, "RoleBinding": 1, "Service": 1}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func documents(t *testing.T, ca []byte, port int32) []*unstructured.Unstructured {
	t.Helper()
	text, err := Manifests(ca, port)
	expect.NoError(t, err)
	return testobj.ParseAll(t, text)
}

package apiservertest_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

func TestServer_FieldSelectors(t *testing.T) {
	t.Parallel()
	fieldSelectors(t, apiservertest.Start(t).Config())
}

func TestServer_FieldSelectorsInACluster(t *testing.T) {
	fieldSelectors(t, controlplane.Shared(t).Config())
}

// fieldSelectors lists and watches objects by fields that they have, that they lack, and that clients cannot select by.
func fieldSelectors(t *testing.T, config *rest.Config) {
	client := dynamic.NewForConfigOrDie(config)
	for _, test := range []struct{ object, has, lacks, unknown string }{
		{`{apiVersion: v1, kind: Pod, spec: {nodeName: a, containers: [{name: a, image: a}]}}`, "spec.nodeName=a,spec.hostNetwork=false,status.podIP=,status.phase=Pending", "spec.nodeName!=a", "spec.hostname"},
		{`{apiVersion: v1, kind: Secret, type: example.com/a}`, "type=example.com/a", "type=Opaque", "immutable"},
		{`{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: a}}`, "spec.type=ExternalName", "spec.type=ClusterIP", "spec.externalName"},
		{`{apiVersion: v1, kind: Event, involvedObject: {kind: Pod, namespace: default, name: a}, reason: A, source: {component: a}}`, "involvedObject.kind=Pod,involvedObject.name=a,reason=A,source=a", "involvedObject.name=b", "message"},
		{`{apiVersion: events.k8s.io/v1, kind: Event, eventTime: "2006-01-02T15:04:05.000000Z", regarding: {kind: Pod, namespace: default, name: a}, reason: A, action: A, type: Normal, reportingController: example.com/a, reportingInstance: a}`, "regarding.kind=Pod,regarding.name=a,reportingController=example.com/a", "type=Warning", "note"},
		{`{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`, "status.successful=0", "status.successful=1", "status.active"},
		{`{apiVersion: v1, kind: ConfigMap}`, "metadata.namespace=default", "metadata.namespace=other", "data"},
	} {
		u := testobj.Parse(t, test.object)
		name := "selected-" + rand.String(5)
		u.SetName(name)
		gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		t.Run(schema.GroupKind{Group: gvr.Group, Kind: u.GetKind()}.String(), func(t *testing.T) {
			resource := client.Resource(gvr).Namespace("default")
			_, err := resource.Create(t.Context(), u, metav1.CreateOptions{})
			expect.NoError(t, err)
			for selector, want := range map[string]int{test.has: 1, test.lacks: 0} {
				list, err := resource.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name + "," + selector})
				expect.NoError(t, err)
				if got := len(list.Items); got != want {
					t.Errorf("%s selects %d objects, want %d", selector, got, want)
				}
			}
			if _, err := resource.List(t.Context(), metav1.ListOptions{FieldSelector: test.unknown + "=a"}); err == nil {
				t.Errorf("%s is selectable", test.unknown)
			}
			w, err := resource.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name + "," + test.has, ResourceVersion: "0"})
			expect.NoError(t, err)
			defer w.Stop()
			if e := <-w.ResultChan(); e.Type != watch.Added {
				t.Errorf("the watch begins with %v", e)
			}
		})
	}
}

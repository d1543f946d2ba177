package apiservertest_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

func TestServer_Events(t *testing.T) {
	t.Parallel()
	events(t, apiservertest.Start(t).Config())
}

func TestServer_EventsInACluster(t *testing.T) { events(t, controlplane.Shared(t).Config()) }

// events finds the Event of a recorder in both groups that have Events, and changes it in both.
func events(t *testing.T, config *rest.Config) {
	kube := kubernetes.NewForConfigOrDie(config)
	name := "event-" + rand.String(5)
	_, err := kube.EventsV1().Events("default").Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name}, EventTime: metav1.NowMicro(), ReportingController: "example.com/a", ReportingInstance: "a", Action: "Act",
		Reason: "Reason", Type: corev1.EventTypeNormal, Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "a"}, Note: "note",
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	w, err := kube.EventsV1().Events("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	expect.NoError(t, err)
	defer w.Stop()
	core, err := kube.CoreV1().Events("default").Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	if core.Message != "note" || core.InvolvedObject.Name != "a" || core.ReportingController != "example.com/a" || core.Action != "Act" {
		t.Errorf("got %v", core)
	}
	_, err = kube.CoreV1().Events("default").Patch(t.Context(), name, types.MergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{})
	expect.NoError(t, err)
	series := `{"series":{"count":3,"lastObservedTime":"` + time.Now().Format(metav1.RFC3339Micro) + `"}}`
	event, err := kube.EventsV1().Events("default").Patch(t.Context(), name, types.StrategicMergePatchType, []byte(series), metav1.PatchOptions{})
	expect.NoError(t, err)
	if event.DeprecatedCount != 2 || event.Note != "note" || event.Series.Count != 3 {
		t.Errorf("got %v", event)
	}
	list, err := kube.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	expect.NoError(t, err)
	if len(list.Items) != 1 || list.Items[0].Series.Count != 3 {
		t.Errorf("got %v", list.Items)
	}
	for e := range w.ResultChan() {
		if event := e.Object.(*eventsv1.Event); event.Series != nil {
			break
		}
	}
	expect.NoError(t, kube.CoreV1().Events("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	if _, err := kube.EventsV1().Events("default").Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		t.Error("the Event is still there")
	}
}

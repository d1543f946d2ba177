package report_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/report"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

// newClient returns a client that creates Events, or fails with an error.
func newClient(err error) *fake.FakeDynamicClient {
	c := fake.NewSimpleDynamicClient(runtime.NewScheme())
	c.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), err
	})
	return c
}

// events returns the Events that a client was asked to create.
func events(t *testing.T, client *fake.FakeDynamicClient) (all []corev1.Event) {
	t.Helper()
	for _, action := range client.Actions() {
		var event corev1.Event
		obj := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &event))
		all = append(all, event)
	}
	return all
}

var crd = corev1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "pizzas.example.com"}

func TestReport_LineEventAndCount(t *testing.T) {
	c := newClient(nil)
	o := report.New(crd, "pizza-operator", "Broken", "Fixed", "Never")
	ctx, logged := logcheck.Record(t.Context())
	o.Report(ctx, c, "uid", report.Change{Reason: "Broken", Message: "It broke", Warning: errors.New("by hand"), Values: []any{"fieldManagers", []string{"kubectl"}}})
	o.Wait()
	o.Report(ctx, c, "uid", report.Change{Reason: "Fixed", Message: strings.Repeat("é", 1000)})
	o.Wait()
	if diff := cmp.Diff([]string{
		`"msg"="It broke" "error"="by hand" "reason"="Broken" "fieldManagers"=["kubectl"]`,
		`"level"=0 "msg"="` + strings.Repeat("é", 1000) + `" "reason"="Fixed"`,
	}, logged()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	created := events(t, c)
	if len(created) != 2 || created[0].Namespace != "default" {
		t.Fatalf("the Events are %+v", created)
	}
	e := created[0]
	crd := crd
	crd.UID = "uid"
	if diff := cmp.Diff(crd, e.InvolvedObject); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if e.Type != "Warning" || e.Message != "It broke: by hand; fieldManagers: [kubectl]" || e.Count != 1 || e.Source.Component != "pizza-operator" || e.FirstTimestamp.IsZero() {
		t.Errorf("the Event is %+v", e)
	}
	if e := created[1]; e.Type != "Normal" || len(e.Message) != 1024 {
		t.Errorf("the Event has type %s and %d bytes", e.Type, len(e.Message))
	}
	totals := map[string]int{}
	o.Totals(func(kind, name, reason string, total int) { totals[kind+" "+name+" "+reason] = total })
	const prefix = "CustomResourceDefinition pizzas.example.com "
	if diff := cmp.Diff(map[string]int{prefix + "Broken": 1, prefix + "Fixed": 1, prefix + "Never": 0}, totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestReport_RepetitionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(nil)
		o := report.New(crd, "pizza-operator", "Again", "Other")
		ctx, logged := logcheck.Record(t.Context())
		for range 3600 {
			o.Report(ctx, c, "", report.Change{Reason: "Again", Message: "Again"})
			time.Sleep(time.Second)
		}
		o.Report(ctx, c, "", report.Change{Reason: "Other", Message: "Other"})
		o.Wait()
		lines, created := logged(), events(t, c)
		if len(lines) != len(created) || len(lines) < 15 || len(lines) > 25 {
			t.Errorf("%d lines and %d Events in an hour", len(lines), len(created))
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, "Other") {
			t.Errorf("a change of another reason is not reported: %q", last)
		}
		total := 0
		for _, e := range created {
			total += int(e.Count)
			if e.Count > 1 && e.LastTimestamp.Sub(e.FirstTimestamp.Time) < time.Minute {
				t.Errorf("%d changes from %s to %s", e.Count, e.FirstTimestamp, e.LastTimestamp)
			}
		}
		if total < 3200 {
			t.Errorf("the Events count %d changes", total)
		}
	})
}

func TestReport_EventsForbidden(t *testing.T) {
	ctx, logged := logcheck.Record(t.Context())
	c := newClient(apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no")))
	o := report.New(crd, "pizza-operator", "Broken")
	for range 3 {
		o.Report(ctx, c, "", report.Change{Reason: "Broken", Message: "It broke"})
		o.Wait()
	}
	lines := logged()
	if n := strings.Count(strings.Join(lines, "\n"), "Cannot create an Event"); n != 1 || len(lines) != 4 {
		t.Errorf("the log is %q", lines)
	}
}

func TestManagers_OfFields(t *testing.T) {
	webhook := func(name string) fieldpath.Path {
		return fieldpath.MakePathOrDie("webhooks", fieldpath.KeyByFields("name", name), "clientConfig", "caBundle")
	}
	obj := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:clientConfig":{"f:caBundle":{}}}}}`)},
		{Manager: "cainjector", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"b\"}":{".":{},"f:clientConfig":{"f:caBundle":{},"f:url":{}}}}}`)},
		{Manager: "helm", FieldsV1: metav1.NewFieldsV1(`{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:clientConfig":{"f:url":{}}}}}`)},
		{Manager: "broken", FieldsV1: metav1.NewFieldsV1(`{"f:`)},
		{Manager: "empty"},
	}}
	for _, c := range []struct {
		paths []fieldpath.Path
		want  []string
	}{
		{nil, nil},
		{[]fieldpath.Path{webhook("a")}, []string{"kubectl"}},
		{[]fieldpath.Path{webhook("a"), webhook("b")}, []string{"cainjector", "kubectl"}},
		{[]fieldpath.Path{webhook("c")}, nil},
	} {
		if diff := cmp.Diff(c.want, report.Managers(obj, c.paths...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.paths, diff)
		}
	}
}

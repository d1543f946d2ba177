package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// hook installs a webhook for updates of boxes, or of a subresource.
func (w *warehouse) hook(resource string, f webhook) {
	w.t.Helper()
	_, sub, _ := strings.Cut(resource, "/")
	w.register(resource, admission.NewHandler(runtime.NewScheme(), f.options(w, sub)...))
}

// register installs a webhook that refuses the canary, and waits until it is called.
func (w *warehouse) register(resource string, h http.Handler) {
	w.t.Helper()
	url, ca := webhooktest.Serve(w.t, h)
	webhooktest.Register(w.t, w.Config, url, ca, fmt.Sprintf(`
kind: MutatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: guard.%s
  rules: [{operations: [UPDATE], apiGroups: [%[2]s], apiVersions: ["*"], resources: [%[3]s]}]
`, w.Plural, w.Group, resource))
	expect.Eventually(w.t, func() error {
		if w.tried("canary", `{"metadata":{}}`, strings.Split(resource, "/")[1:]...) == nil {
			return errors.New("canary was not refused")
		}
		return nil
	})
}

// canary creates a box that each webhook of these tests refuses.
func (w *warehouse) canary() {
	w.t.Helper()
	box := w.box("v1", "canary", nil)
	_, err := w.Boxes("v1").Namespace("default").Create(w.t.Context(), box, metav1.CreateOptions{})
	expect.NoError(w.t, err)
}

// unhook removes the webhook, and waits until it does not refuse a box any more.
func (w *warehouse) unhook(name string, subresources ...string) {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.Config)
	expect.NoError(w.t, err)
	expect.NoError(w.t, client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(w.t.Context(), w.Plural, metav1.DeleteOptions{}))
	expect.Eventually(w.t, func() error { return w.tried(name, `{"metadata":{}}`, subresources...) })
}

// tried returns the error of a patch in a dry run.
func (w *warehouse) tried(name, patch string, subresources ...string) error {
	_, err := w.Boxes("v1").Namespace("default").Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{"All"}}, subresources...)
	return err
}

func (w *warehouse) delete(name string) {
	w.t.Helper()
	expect.NoError(w.t, w.Boxes("v1").Namespace("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// webhook is a function that is called for updates of boxes.
type webhook func(box *unstructured.Unstructured) error

func (f webhook) options(w *warehouse, sub string) []admission.Option {
	var opts []admission.Option
	for _, version := range []string{"v1alpha1", "v1"} {
		filters := []admission.Filter{admission.ForKind(schema.GroupVersionKind{Group: w.Group, Version: version, Kind: "Box"})}
		if sub != "" {
			filters = append(filters, admission.Subresource(sub))
		}
		opts = append(opts, admission.Mutate(func(_ context.Context, box *unstructured.Unstructured) error { return f(box) }, filters...))
	}
	return opts
}

// refuse refuses these boxes, and the canary.
func (w *warehouse) refuse(names ...string) webhook {
	return func(box *unstructured.Unstructured) error {
		if slices.Contains(append(names, "canary"), box.GetName()) {
			return apierrors.NewForbidden(schema.GroupResource{Group: w.Group, Resource: w.Plural}, box.GetName(), errors.New("box is too old to be touched"))
		}
		return nil
	}
}

func TestRun_AdmissionRefuses(t *testing.T) {
	t.Parallel()
	t.Run("where there is a status subresource, webhooks of the resource are not asked", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		w.Fill(10)
		w.canary()
		w.Store("v1")
		w.hook(w.Plural, w.refuse("box-00001"))
		report, err := w.run()
		expect.NoError(t, err)
		progressed(t, report, migrate.Progress{Total: 11, Rewritten: 11})
		w.OnlyIn("v1")
	})

	t.Run("what is refused is named, and the others go on", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		w.Fill(10)
		w.canary()
		w.hook(w.Plural+"/status", w.refuse("box-00001", "box-00004"))
		w.delete("canary")
		w.Store("v1")
		before := w.resourceVersions()
		for range 2 { // and again
			report, err := w.run()
			if err == nil {
				t.Fatal("nothing was refused")
			}
			want := migrate.Progress{Total: 10, Rewritten: 8, Failed: 2}
			if report.Current > 0 {
				want = migrate.Progress{Total: 10, Current: 8, Failed: 2}
			}
			progressed(t, report, want)
			expect.ErrorContains(t, err, w.CRD, "2 of 10 objects", "default/box-00001: admission webhook", "default/box-00004: ", "too old to be touched", "status.storedVersions keeps v1alpha1")
			if !errors.Is(err, migrate.ErrRefused) || len(report.Problems) != 2 || report.Dropped != nil {
				t.Errorf("%+v", report)
			}
		}
		w.stores("v1alpha1", "v1")
		after := w.resourceVersions()
		if after["box-00001"] != before["box-00001"] || after["box-00002"] == before["box-00002"] {
			t.Errorf("before %v, after %v", before, after)
		}
		w.unhook("box-00001", "status")
		report, err := w.run()
		expect.NoError(t, err)
		progressed(t, report, migrate.Progress{Total: 10, Current: 8, Rewritten: 2})
		w.OnlyIn("v1")
	})

	t.Run("what would be changed is left alone", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t, withoutStatus)
		w.Fill(10)
		w.canary()
		w.hook(w.Plural, func(box *unstructured.Unstructured) error {
			switch box.GetName() {
			case "box-00001":
				box.SetLabels(map[string]string{"touched": "yes"})
			case "box-00005":
				return unstructured.SetNestedField(box.Object, "new", "spec", "note", "by")
			}
			return w.refuse()(box)
		})
		w.delete("canary")
		w.Store("v1")
		inventory, before := w.Inventory("v1"), w.resourceVersions()
		for _, dry := range [][]migrate.Option{{migrate.DryRun()}, nil} {
			report, err := w.run(dry...)
			progressed(t, report, migrate.Progress{Total: 10, Rewritten: 8, Failed: 2})
			expect.ErrorContains(t, err, "default/box-00001: metadata.labels: admission would change them", "default/box-00005: metadata.generation and so other fields than metadata: admission would change them")
		}
		if diff := cmp.Diff(inventory, w.Inventory("v1")); diff != "" {
			t.Error(diff)
		}
		if after := w.resourceVersions(); after["box-00001"] != before["box-00001"] || after["box-00005"] != before["box-00005"] {
			t.Errorf("before %v, after %v", before, after)
		}
	})

	t.Run("what cannot be converted is named, and the others go on", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		w.Fill(10)
		box := w.box("v1alpha1", "broken", map[string]any{"size": "huge"})
		_, err := w.Boxes("v1alpha1").Namespace("default").Create(t.Context(), box, metav1.CreateOptions{})
		expect.NoError(t, err)
		w.Store("v1")
		report, err := w.run()
		progressed(t, report, migrate.Progress{Total: 11, Rewritten: 10, Failed: 1})
		expect.ErrorContains(t, err, "default/broken: ", `spec.size: "huge" is not like 3x4`)
		// It cannot even be deleted: the webhook must be fixed.
		w.Lenient.Store(true)
		report, err = w.run()
		expect.NoError(t, err)
		progressed(t, report, migrate.Progress{Total: 11, Rewritten: 1, Current: 10})
		w.OnlyIn("v1")
	})

	t.Run("a schema that has become stricter", func(t *testing.T) {
		t.Parallel()
		w := newWarehouse(t)
		w.Fill(10)
		w.Store("v1")
		w.Change(func(v map[string]any) {
			if v["name"] != "v1" {
				return
			}
			expect.NoError(t, unstructured.SetNestedField(v, int64(5), "schema", "openAPIV3Schema", "properties", "spec", "properties", "width", "minimum"))
		})
		expect.Eventually(t, func() error {
			if w.tried("box-00009", `{"spec":{"width":4}}`) == nil {
				return errors.New("a narrow box is taken")
			}
			return nil
		})
		report, err := w.run()
		expect.NoError(t, err)
		progressed(t, report, migrate.Progress{Total: 10, Rewritten: 10})
	})
}

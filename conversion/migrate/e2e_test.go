package migrate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// Nothing but the storage version changes.
func TestRun_ChangesOnlyStorageVersion(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	n := tier.Pick(60, 300)
	w.Fill(n)
	before := map[string]map[string][sha256.Size]byte{"v1alpha1": w.Inventory("v1alpha1"), "v1": w.Inventory("v1")}
	w.Store("v1")
	w.stores("v1alpha1", "v1")
	report, err := migrate.Run(t.Context(), w.Config, w.CRD, migrate.Rate(0), migrate.PropagationDelay(0))
	expect.NoError(t, err)
	want := &migrate.Report{Progress: migrate.Progress{Total: int64(n), Rewritten: int64(n)}, Storage: "v1", Dropped: []string{"v1alpha1"}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.stores("v1")
	w.OnlyIn("v1")
	for version, boxes := range before {
		after := w.Inventory(version)
		if len(after) != n {
			t.Errorf("%d of %d boxes are there in %s", len(after), n, version)
		}
		for name, box := range boxes {
			if after[name] != box {
				t.Errorf("%s is another one in %s", name, version)
			}
		}
	}
	if a := w.Definition().GetAnnotations(); len(a) > 0 {
		t.Errorf("annotations stayed behind: %v", a)
	}

	// There is nothing left to do.
	report, err = migrate.Run(t.Context(), w.Config, w.CRD)
	expect.NoError(t, err)
	if diff := cmp.Diff(&migrate.Report{Storage: "v1"}, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The writes of other clients meanwhile are not lost.
func TestRun_ConcurrentWrites(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	n := tier.Pick(120, 400)
	w.Fill(n)
	w.Store("v1")
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	written := make([]map[string]string, 4) // the last label that was written
	for i := range written {
		written[i] = map[string]string{}
		writers.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				for j := i; j < n && ctx.Err() == nil; j += 20 {
					name, label := fmt.Sprintf("box-%05d", j), fmt.Sprintf("r%d", round)
					patch := fmt.Sprintf(`{"metadata":{"labels":{"round":%q}}}`, label)
					if err := w.patch([]string{"v1", "v1alpha1"}[round%2], name, patch); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					written[i][name] = label
				}
			}
		})
	}
	var deleted []string
	writers.Go(func() { // and one deletes and creates again
		for j := 7; j < n && ctx.Err() == nil; j += 20 {
			name := fmt.Sprintf("box-%05d", j)
			if err := w.Boxes("v1").Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if j%40 == 7 {
				if err := w.Create(j); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else {
				deleted = append(deleted, name)
			}
		}
	})
	report, err := migrate.Run(t.Context(), w.Config, w.CRD, migrate.Rate(200), migrate.PropagationDelay(0))
	stop()
	writers.Wait()
	expect.NoError(t, err)
	if report.Failed > 0 || report.Current == 0 || report.Rewritten == 0 {
		t.Errorf("%+v", report.Progress)
	}
	w.OnlyIn("v1")
	for _, part := range written {
		for name, label := range part {
			box, err := w.Boxes("v1").Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
			expect.NoError(t, err)
			if got := box.GetLabels()["round"]; got != label {
				t.Errorf("%s has the label %q, %q was written", name, got, label)
			}
		}
	}
	for _, name := range deleted {
		if _, err := w.Boxes("v1").Namespace("default").Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is there again: %v", name, err)
		}
	}
}

// A migration that was interrupted goes on.
func TestRun_Interrupted(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	n := tier.Pick(60, 300)
	w.Fill(n)
	before := w.Inventory("v1")
	w.Store("v1")
	var total int64
	for round := 0; ; round++ {
		ctx, cancel := context.WithCancel(t.Context())
		report, err := migrate.Run(ctx, w.Config, w.CRD, migrate.Rate(0), migrate.PropagationDelay(0), migrate.Observe(func(p migrate.Progress) {
			if p.Rewritten > int64(n/6) {
				cancel()
			}
		}))
		cancel()
		total += report.Rewritten
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.stores("v1alpha1", "v1")
		if round == 10 {
			t.Fatal("it never ends")
		}
	}
	// Objects that were being written at the interruption may count twice, or not.
	if total < int64(n-40) || total > int64(n) {
		t.Errorf("%d objects were rewritten %d times", n, total)
	}
	w.OnlyIn("v1")
	if diff := cmp.Diff(before, w.Inventory("v1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The managedFields that the API server drops are put back. The API server converts an object to
// v1alpha1 to find out what that owner owns; if it cannot, it drops all managedFields, and says
// nothing. That may happen when the rewrite is rehearsed, when it is done, and when they are put
// back.
func TestRun_DroppedManagedFields(t *testing.T) {
	t.Parallel()
	for nth := int64(1); nth <= 6; nth++ {
		t.Run(fmt.Sprintf("conversion %d fails", nth), func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t)
			w.Fill(10)
			before := w.Inventory("v1")
			w.Store("v1")
			w.Stutter.Store(nth)
			report, err := w.run()
			expect.NoError(t, err)
			progressed(t, report, migrate.Progress{Total: 10, Rewritten: 10})
			w.Stutter.Store(0)
			if diff := cmp.Diff(before, w.Inventory("v1")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			w.OnlyIn("v1")
		})
	}
}

// An object that would lose its owners is left alone.
func TestRun_ObjectWouldLoseOwners(t *testing.T) {
	t.Parallel()
	controlplane.Shared(t).SkipFrom(t, 37, "it keeps managedFields that it cannot convert")
	w := newWarehouse(t)
	w.Fill(5)
	err := w.patch("v1alpha1", "box-00003", `{"metadata":{"annotations":{"one-way":"yes"}}}`)
	expect.NoError(t, err)
	before, versions := w.Inventory("v1"), w.resourceVersions()
	w.OneWay.Store(true)
	w.Store("v1")
	for _, opts := range [][]migrate.Option{{migrate.DryRun()}, nil} {
		_, err = w.run(opts...)
		expect.ErrorContains(t, err, "1 of 5 objects", "default/box-00003: metadata.managedFields: the API server would drop them, since it cannot convert the object from v1 to each version that they name")
	}
	w.stores("v1alpha1", "v1")
	if now := w.resourceVersions(); now["box-00003"] != versions["box-00003"] || now["box-00002"] == versions["box-00002"] {
		t.Errorf("before: %v, after: %v", versions, now)
	}
	w.OneWay.Store(false)
	_, err = w.run()
	expect.NoError(t, err)
	if diff := cmp.Diff(before, w.Inventory("v1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.OnlyIn("v1")
}

// Owners are not forgotten through another version. The entries of managedFields are written as the
// objects are, and so through the storage version alone.
func TestPruneManagedFields_OtherVersion(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = nil // v1beta1 has no field for what is stored in v1
		other := crd.Spec.Versions[0].DeepCopy()
		other.Name, other.Storage = "v1beta1", false
		crd.Spec.Versions = append(crd.Spec.Versions, *other)
	})
	w.Store("v1")
	box := w.box("v1", "wide", map[string]any{"width": int64(5), "height": int64(6)})
	_, err := w.Boxes("v1").Namespace("default").Create(t.Context(), box, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = w.Boxes("v1").Namespace("default").Patch(t.Context(), "wide", types.ApplyPatchType,
		fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":"Box","metadata":{"name":"wide","labels":{"a":"b"}}}`, w.Group), metav1.PatchOptions{FieldManager: "gitops"})
	expect.NoError(t, err)
	_, err = w.run()
	expect.NoError(t, err)
	w.serveOnly("v1beta1", "v1")
	expect.ErrorContains(t, migrate.Remove(t.Context(), w.Config, w.CRD, "v1alpha1", migrate.PruneManagedFields()), "the storage version v1 is not served")
}

func TestDryRun_WritesNothing(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(20)
	w.Store("v1")
	crd, boxes := w.Definition(), w.resourceVersions()
	report, err := migrate.Run(t.Context(), w.Config, w.CRD, migrate.DryRun())
	expect.NoError(t, err)
	want := &migrate.Report{Progress: migrate.Progress{Total: 20, Rewritten: 20}, Storage: "v1", Dropped: []string{"v1alpha1"}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(crd, w.Definition()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(boxes, w.resourceVersions()); diff != "" {
		t.Error(diff)
	}
}

// A definition that changes meanwhile is read again.
func TestRun_DefinitionChanges(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(40)
	w.Store("v1")
	var once sync.Once
	report, err := migrate.Run(t.Context(), w.Config, w.CRD, migrate.Rate(60), migrate.PropagationDelay(0), migrate.Observe(func(p migrate.Progress) {
		if p.Rewritten > 10 {
			once.Do(func() { // a box is stored in v1alpha1 after all
				w.Store("v1alpha1")
				err := w.patch("v1", "box-00000", `{"metadata":{"labels":{"late":"yes"}}}`)
				if err != nil {
					t.Error(err)
				}
				w.Store("v1")
			})
		}
	}))
	expect.NoError(t, err)
	if report.Rewritten+report.Current != 40 {
		t.Errorf("%+v", report.Progress)
	}
	w.OnlyIn("v1")
}

// A request that is on its way is waited for.
func TestRun_RequestOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	w.Fill(3)
	w.canary()
	var slow atomic.Bool
	called := make(chan struct{}, 1)
	w.hook(w.Plural, func(box *unstructured.Unstructured) error {
		if slow.Load() {
			called <- struct{}{}
			time.Sleep(3 * time.Second)
		}
		return w.refuse()(box)
	})
	slow.Store(true)
	written := make(chan error)
	go func() {
		err := w.patch("v1", "box-00000", `{"metadata":{"labels":{"late":"yes"}}}`)
		written <- err
	}()
	<-called
	w.Store("v1") // the request goes on to store in v1alpha1
	_, err := w.run(migrate.PropagationDelay(8 * time.Second))
	expect.NoError(t, err)
	expect.NoError(t, <-written)
	slow.Store(false)
	w.OnlyIn("v1")
}

// The delay is kept although the entry of who changed the versions has been removed from managedFields, or the
// change was a while ago, but within the delay.
func TestRun_WaitsAfterAChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields string
		ago    time.Duration
	}{
		"nobody owns the versions": {`{"f:spec":{"f:group":{}}}`, 2 * time.Hour},
		"within the delay":         {`{"f:spec":{"f:versions":{}}}`, 50 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t)
			client, err := dynamic.NewForConfig(w.Config)
			expect.NoError(t, err)
			w.Store("v1")
			crd := w.Definition()
			changed := metav1.NewTime(time.Now().Add(-c.ago))
			crd.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apiextensions.k8s.io/v1", Time: &changed,
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(c.fields),
			}})
			expect.Eventually(t, func() error {
				crd.SetResourceVersion(w.Definition().GetResourceVersion())
				_, err := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Update(t.Context(), crd, metav1.UpdateOptions{})
				return err
			})
			ctx, cancel := context.WithCancel(t.Context())
			var waiting time.Duration
			_, err = migrate.Run(ctx, w.Config, w.CRD, migrate.PropagationDelay(time.Hour), migrate.Observe(func(p migrate.Progress) {
				waiting = p.Waiting
				cancel()
			}))
			if !errors.Is(err, context.Canceled) || waiting != time.Hour {
				t.Errorf("waits for %s: %v", waiting, err)
			}
		})
	}
}

// Nothing is written through another version than the storage version.
func TestRun_WritesStorageVersionOnly(t *testing.T) {
	// Without a conversion webhook, v1alpha1 has no field for what is stored in v1.
	t.Parallel()
	w := newWarehouse(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = nil
		crd.Spec.Scope = apiextensionsv1.ClusterScoped
	})
	w.Store("v1")
	box := w.box("v1", "wide", map[string]any{"width": int64(5), "height": int64(6)})
	_, err := w.Boxes("v1").Create(t.Context(), box, metav1.CreateOptions{})
	expect.NoError(t, err)
	w.serveOnly("v1alpha1", "v1")
	_, err = w.run()
	expect.ErrorContains(t, err, "the storage version v1 is not served", "expected served: true")
	w.stores("v1alpha1", "v1")
	w.Change(func(v map[string]any) { v["served"] = true })
	expect.Eventually(t, func() error {
		now, err := w.Boxes("v1").Get(t.Context(), "wide", metav1.GetOptions{})
		if err == nil {
			box = now
		}
		return err
	})
	if diff := cmp.Diff(any(map[string]any{"width": int64(5), "height": int64(6)}), box.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = w.run()
	expect.NoError(t, err)
}

// A wrong name is an error.
func TestRun_WrongName(t *testing.T) {
	t.Parallel()
	_, err := migrate.Run(t.Context(), controlplane.Shared(t).Config(), "pallets.example.com")
	if err == nil || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "pallets.example.com") {
		t.Errorf("got %v", err)
	}
}

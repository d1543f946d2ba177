package migrate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	svmv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

// control runs a controller for the boxes, with the least rights, until the test ends.
func (w *warehouse) control(ctx context.Context, patience time.Duration) {
	w.t.Helper()
	config := w.user("controller-of-"+w.CRD, migrate.ControllerRules(w.CRD))
	c, err := migrate.NewController(config, []string{w.CRD}, migrate.Rate(0), migrate.PropagationDelay(0))
	expect.NoError(w.t, err)
	c.DelegatePatience(patience)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// migrated waits until only v1 is stored.
func (w *warehouse) migrated() {
	w.t.Helper()
	expect.Eventually(w.t, func() error {
		if stored := w.StoredVersions(); !slices.Equal(stored, []string{"v1"}) {
			return fmt.Errorf("status.storedVersions is %v, want [v1]", stored)
		}
		return nil
	})
	w.OnlyIn("v1")
}

// migrations returns the migrations of the boxes that the API has.
func (w *warehouse) migrations() (all []svmv1.StorageVersionMigration) {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.Config)
	expect.NoError(w.t, err)
	list, err := client.StoragemigrationV1().StorageVersionMigrations().List(w.t.Context(), metav1.ListOptions{})
	expect.NoError(w.t, err)
	for _, migration := range list.Items {
		if migration.Spec.Resource.Group == w.Group {
			all = append(all, migration)
		}
	}
	return all
}

// manage does what kube-controller-manager does with migrations, up to a number of boxes
// (kubernetes/pkg/controller/storageversionmigrator).
func (w *warehouse) manage(most int) {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.Config)
	expect.NoError(w.t, err)
	ctx := w.t.Context()
	expect.Eventually(w.t, func() error {
		if len(w.migrations()) != 1 {
			return fmt.Errorf("migrations: there are %d, want 1", len(w.migrations()))
		}
		return nil
	})
	migration := &w.migrations()[0]
	set := func(condition svmv1.MigrationConditionType) {
		meta.SetStatusCondition(&migration.Status.Conditions, metav1.Condition{Type: string(condition), Status: metav1.ConditionTrue, Reason: "Test"})
		migration, err = client.StoragemigrationV1().StorageVersionMigrations().UpdateStatus(ctx, migration, metav1.UpdateOptions{})
		expect.NoError(w.t, err)
	}
	set(svmv1.MigrationRunning)
	list, err := w.Boxes("v1").List(ctx, metav1.ListOptions{})
	expect.NoError(w.t, err)
	migration.Status.ResourceVersion = list.GetResourceVersion()
	set(svmv1.MigrationRunning)
	for i, box := range list.Items {
		if i == most {
			set(svmv1.MigrationFailed)
			return
		}
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"resourceVersion":%q}}`, box.GetUID(), box.GetResourceVersion())
		_, err := w.Boxes("v1").Namespace(box.GetNamespace()).Patch(ctx, box.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "storage-version-migrator-controller"})
		expect.NoError(w.t, err)
	}
	set(svmv1.MigrationSucceeded)
}

func TestController_DrivesTheAPI(t *testing.T) {
	t.Parallel()
	controlplane.Shared(t).SkipIfOlder(t, "storagemigration.k8s.io/v1 is served")
	for name, most := range map[string]int{"succeeded": -1, "failed halfway": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWarehouse(t)
			w.Fill(10)
			w.control(t.Context(), time.Hour)
			w.Store("v1")
			before := w.resourceVersions()
			w.manage(most)
			rewritten := w.resourceVersions()
			w.migrated()
			after := w.resourceVersions()
			for box := range after {
				if rewritten[box] != before[box] && after[box] != rewritten[box] {
					t.Errorf("%s was written twice", box)
				}
			}
		})
	}
}

// The controller does without the API where admission refuses. The API would stop at the box, which
// its controller writes as any client does.
func TestController_AdmissionRefuses(t *testing.T) {
	t.Parallel()
	controlplane.Shared(t).SkipIfOlder(t, "storagemigration.k8s.io/v1 is served")
	w := newWarehouse(t)
	w.Fill(10)
	w.canary()
	w.hook(w.Plural, w.refuse("box-00001"))
	w.Store("v1")
	w.control(t.Context(), time.Hour)
	w.migrated()
	if all := w.migrations(); len(all) > 0 {
		t.Errorf("the migrations are %v, want none", all)
	}
}

// The API is served, but its controller does not run.
func TestController_NoControllerOfAPI(t *testing.T) {
	t.Parallel()
	controlplane.Shared(t).SkipIfOlder(t, "storagemigration.k8s.io/v1 is served")
	w := newWarehouse(t)
	w.Fill(3)
	w.Store("v1")
	w.control(t.Context(), 0)
	w.migrated()
	if all := w.migrations(); len(all) > 0 {
		t.Errorf("the migrations are %v, want none", all)
	}
}

// A controller says that there is no definition, and migrates once there is one.
func TestController_NoDefinition(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	client, err := dynamic.NewForConfig(w.Config)
	expect.NoError(t, err)
	crds := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	definition := w.Definition()
	expect.NoError(t, crds.Delete(t.Context(), w.CRD, metav1.DeleteOptions{}))
	expect.Eventually(t, func() error {
		_, err := crds.Get(t.Context(), w.CRD, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("definition %s still exists: %v", w.CRD, err)
		}
		return nil
	})
	ctx, lines := logcheck.Record(t.Context())
	w.control(ctx, 0)
	want := `"level"=0 "msg"="The CustomResourceDefinition does not exist; its stored objects are migrated once it is created" "customResourceDefinition"="` + w.CRD + `"`
	expect.EventuallyTrue(t, "it says so", func() bool { return len(lines()) > 0 })
	time.Sleep(time.Second) // in which the watch begins, and wakes the controller
	if diff := cmp.Diff([]string{want}, lines()); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	delete(definition.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(definition.Object, "metadata", field)
	}
	_, err = crds.Create(t.Context(), definition, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.Eventually(t, func() error {
		_, err := w.Boxes("v1").List(t.Context(), metav1.ListOptions{})
		return err
	})
	w.Fill(3)
	w.Store("v1")
	w.migrated()
}

func TestNewController_ChecksItsArguments(t *testing.T) {
	config := controlplane.Shared(t).Config()
	for name, test := range map[string]struct {
		crds []string
		opts []migrate.Option
		want string
	}{
		"no definition": {nil, nil, "crds is empty"},
		"a dry run":     {[]string{"a.example.com"}, []migrate.Option{migrate.DryRun()}, "DryRun is given"},
		"a rate":        {[]string{"a.example.com"}, []migrate.Option{migrate.Rate(-1)}, "Rate is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrate.NewController(config, test.crds, test.opts...)
			expect.ErrorContains(t, err, test.want)
		})
	}
}

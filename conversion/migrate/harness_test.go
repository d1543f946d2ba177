package migrate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	boxes "github.com/crdkit/crdkit/test/migratetest"
	"github.com/crdkit/crdkit/test/rbac"
)

// warehouse is the fixture of these tests.
type warehouse struct {
	*boxes.Warehouse
	t *testing.T
}

func newWarehouse(t *testing.T, change ...func(*apiextensionsv1.CustomResourceDefinition)) *warehouse {
	t.Helper()
	return &warehouse{boxes.New(t, controlplane.Shared(t).Config(), change...), t}
}

// run migrates as fast as it can.
func (w *warehouse) run(opts ...migrate.Option) (*migrate.Report, error) {
	return migrate.Run(w.t.Context(), w.Config, w.CRD, append([]migrate.Option{migrate.Rate(0), migrate.PropagationDelay(0)}, opts...)...)
}

// resourceVersions returns that of each box.
func (w *warehouse) resourceVersions() map[string]string {
	w.t.Helper()
	list, err := w.Boxes("v1").List(w.t.Context(), metav1.ListOptions{})
	expect.NoError(w.t, err)
	all := map[string]string{}
	for _, box := range list.Items {
		all[box.GetName()] = box.GetResourceVersion()
	}
	return all
}

// withoutStatus takes the status subresource away.
func withoutStatus(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Subresources = nil
	}
}

// user returns the config of a user with these rights alone.
func (w *warehouse) user(name string, rules []rbacv1.PolicyRule) *rest.Config {
	w.t.Helper()
	rbac.Grant(w.t, w.Config, "", name, rules...)
	config, err := controlplane.Shared(w.t).User(name)
	expect.NoError(w.t, err)
	config.QPS = -1
	return config
}

// box returns a box in a version, with a spec if there is one.
func (w *warehouse) box(version, name string, spec map[string]any) *unstructured.Unstructured {
	box := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.Group + "/" + version, "kind": "Box", "metadata": map[string]any{"name": name}}}
	if spec != nil {
		box.Object["spec"] = spec
	}
	return box
}

// patch changes a box by a merge patch.
func (w *warehouse) patch(version, name, patch string) error {
	_, err := w.Boxes(version).Namespace("default").Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// serveOnly serves no other version, and waits until another one is not served.
func (w *warehouse) serveOnly(version, other string) {
	w.t.Helper()
	w.Change(func(v map[string]any) { v["served"] = v["name"] == version })
	expect.EventuallyTrue(w.t, other+" is not served", func() bool {
		_, err := w.Boxes(other).List(w.t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	})
}

// stores fails the test if status.storedVersions has other versions.
func (w *warehouse) stores(versions ...string) {
	w.t.Helper()
	if diff := cmp.Diff(versions, w.StoredVersions()); diff != "" {
		w.t.Fatalf("status.storedVersions (-want +got):\n%s", diff)
	}
}

// progressed fails the test if a migration reports something else.
func progressed(t *testing.T, report *migrate.Report, want migrate.Progress) {
	t.Helper()
	if diff := cmp.Diff(want, report.Progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

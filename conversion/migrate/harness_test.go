package migrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	boxes "github.com/crdkit/crdkit/test/migratetest"
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
	ctx := w.t.Context()
	admin, err := kubernetes.NewForConfig(w.Config)
	expect.NoError(w.t, err)
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	expect.NoError(w.t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	expect.NoError(w.t, err)
	config, err := controlplane.Shared(w.t).User(name)
	expect.NoError(w.t, err)
	config.QPS = -1
	boxes.Eventually(w.t, "the rules are known", func() error {
		for _, r := range rules {
			for _, verb := range r.Verbs {
				if !allowed(w.t, config, verb, r) {
					return fmt.Errorf("%s may not %s %v", name, verb, r)
				}
			}
		}
		return nil
	})
	return config
}

// allowed reports whether a user may do something.
func allowed(t *testing.T, config *rest.Config, verb string, rule rbacv1.PolicyRule) bool {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Name: strings.Join(rule.ResourceNames, ""),
	}}}
	review, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	expect.NoError(t, err)
	return review.Status.Allowed
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

package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/test/expect"
)

func (w *warehouse) versions() []string {
	w.t.Helper()
	var names []string
	versions, _ := w.Definition().Object["spec"].(map[string]any)["versions"].([]any)
	for _, v := range versions {
		names = append(names, v.(map[string]any)["name"].(string))
	}
	return names
}

// A version is removed when it is not needed any more.
func TestRemove_VersionNobodyNeeds(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	remove := func(opts ...migrate.Option) error {
		return migrate.Remove(t.Context(), w.Config, w.CRD, "v1alpha1", opts...)
	}
	// One owner by apply, and one by update.
	apply := func(version, name string) {
		t.Helper()
		_, err := w.Boxes(version).Namespace("default").Patch(t.Context(), name, types.ApplyPatchType,
			fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Box","metadata":{"name":%q},"spec":{"note":{"by":"gitops"}}}`, w.Group+"/"+version, name), metav1.PatchOptions{FieldManager: "gitops", Force: ptr.To(true)})
		expect.NoError(t, err)
	}
	apply("v1alpha1", "applied")
	for _, p := range [][2]string{{"v1alpha1", `{"spec":{"size":"1x2"}}`}, {"v1", `{"spec":{"height":3}}`}} {
		_, err := w.Boxes(p[0]).Namespace("default").Patch(t.Context(), "applied", types.MergePatchType, []byte(p[1]), metav1.PatchOptions{FieldManager: "stacker"})
		expect.NoError(t, err)
	}
	expect.NoError(t, w.Create(0))
	expect.ErrorContains(t, remove(), "CustomResourceDefinition "+w.CRD, "v1alpha1 is the storage version", "v1alpha1 is served: set served: false", `named in managedFields by "gitops" (Apply), in 1 objects, such as default/applied: let it apply once in v1`)
	expect.ErrorContains(t, migrate.Remove(t.Context(), w.Config, w.CRD, "v2"), `no version "v2", expected one of v1alpha1, v1`)

	w.Store("v1")
	expect.ErrorContains(t, remove(), "v1alpha1 is in status.storedVersions")
	_, err := w.run()
	expect.NoError(t, err)
	w.Change(func(v map[string]any) { v["served"] = v["name"] == "v1" })
	expect.ErrorContains(t, remove(), "gitops", `"unpacker" (Update), in 1 objects, such as default/box-00000: nothing moves such an owner`)

	apply("v1", "applied")
	err = remove()
	expect.ErrorContains(t, err, "unpacker")
	if strings.Contains(err.Error(), "gitops") || strings.Contains(err.Error(), "served") || strings.Contains(err.Error(), "stored") {
		t.Errorf("got %v", err)
	}
	before := w.spec()
	expect.NoError(t, remove(migrate.PruneManagedFields(), migrate.DryRun()))
	if diff := cmp.Diff([]string{"v1alpha1", "v1"}, w.versions()); diff != "" {
		t.Error(diff)
	}
	expect.NoError(t, remove(migrate.PruneManagedFields()))
	if diff := cmp.Diff([]string{"v1"}, w.versions()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, w.spec()); diff != "" {
		t.Error(diff)
	}
	expect.Eventually(t, func() error {
		_, err := w.Boxes("v1alpha1").List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.New("version is still served")
	})
	// Other owners have lost nothing, and each of them can apply.
	owners := func(name string) (managers []string) {
		t.Helper()
		box, err := w.Boxes("v1").Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		expect.NoError(t, err)
		for _, e := range box.GetManagedFields() {
			managers = append(managers, e.Manager+" "+e.APIVersion)
		}
		return managers
	}
	if diff := cmp.Diff([]string{"gitops " + w.Group + "/v1", "stacker " + w.Group + "/v1"}, owners("applied")); diff != "" {
		t.Error(diff)
	}
	if got := owners("box-00000"); len(got) > 0 {
		t.Errorf("box-00000 is still owned by %v", got)
	}
	apply("v1", "applied")
	apply("v1", "box-00000")
}

// spec returns what each box is, apart from managedFields and the resourceVersion.
func (w *warehouse) spec() map[string]any {
	w.t.Helper()
	list, err := w.Boxes("v1").List(w.t.Context(), metav1.ListOptions{})
	expect.NoError(w.t, err)
	all := map[string]any{}
	for _, box := range list.Items {
		box.SetManagedFields(nil)
		box.SetResourceVersion("")
		all[box.GetName()] = box.Object
	}
	return all
}

// The rules are the least that are sufficient.
func TestPolicyRules_Least(t *testing.T) {
	t.Parallel()
	w := newWarehouse(t)
	plain := newWarehouse(t, withoutStatus)
	w.Fill(10)
	plain.Fill(5)
	w.Store("v1")
	plain.Store("v1")
	run := func(config *rest.Config, crd string) error {
		_, err := migrate.Run(t.Context(), config, crd, migrate.PropagationDelay(0))
		if err == nil {
			err = migrate.Remove(t.Context(), config, crd, "v1alpha1", migrate.DryRun())
		}
		return err
	}
	n := 0
	rules := migrate.PolicyRules(w.CRD)
	for i, rule := range rules {
		for j, verb := range rule.Verbs {
			less := append([]rbacv1.PolicyRule(nil), rules...)
			less[i].Verbs = append(append([]string(nil), rule.Verbs[:j]...), rule.Verbs[j+1:]...)
			crd := w.CRD
			if rule.Resources[0] == w.Plural && verb == "patch" { // where there is no status
				crd = plain.CRD
				less = migrate.PolicyRules(crd)
				less[i].Verbs = []string{"get", "list"}
			}
			if len(less[i].Verbs) == 0 {
				less = append(less[:i:i], less[i+1:]...)
			}
			n++
			if err := run(w.user(fmt.Sprintf("less-%d", n), less), crd); err == nil {
				t.Errorf("%s %s of %v is not needed", verb, rule.Resources, rule.APIGroups)
			} else if !strings.Contains(err.Error(), "may not "+verb+" ") && !apierrors.IsForbidden(err) {
				t.Errorf("without %s %s: %v", verb, rule.Resources, err)
			}
		}
	}
	if n < 7 {
		t.Errorf("only %d rules were tried", n)
	}
	for _, crd := range []string{w.CRD, plain.CRD} {
		config := w.user("enough-for-"+crd, migrate.PolicyRules(crd))
		err := run(config, crd)
		expect.ErrorContains(t, err, "v1alpha1 is served") // by Remove: Run is through
		if strings.Contains(err.Error(), "may not") || apierrors.IsForbidden(err) {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"v1"}, append(w.StoredVersions(), plain.StoredVersions()[1:]...)); diff != "" {
		t.Error(diff)
	}
}

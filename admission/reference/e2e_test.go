package reference_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/admission/reference"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/rbac"
	"github.com/crdkit/crdkit/test/webhooktest"
)

// In this test a ConfigMap names Secrets, in the value of "secrets".
func secretsOfConfigMap(cm *corev1.ConfigMap) []reference.Ref {
	var refs []reference.Ref
	for _, name := range strings.Fields(cm.Data["secrets"]) {
		ref := reference.Ref{Path: field.NewPath("data").Key("secrets"), Name: name}
		if namespace, name, found := strings.Cut(name, "/"); found {
			ref.Namespace, ref.Name = namespace, name
		}
		refs = append(refs, ref)
	}
	return refs
}

// TestReferences_OnAnAPIServer runs both directions on a real one.
func TestReferences_OnAnAPIServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	config := cp.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	live, err := metadata.NewForConfig(config)
	expect.NoError(t, err)
	configMaps := schema.GroupResource{Resource: "configmaps"}
	configMapInformer := informerOf(client, client.CoreV1().ConfigMaps(""), &corev1.ConfigMap{})
	// The informer of the secrets sees none: it is as far behind as one can be.
	behind := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=nothing" })).Core().V1().Secrets().Informer()
	known, err := reference.NewTarget(reference.Namespaced(secrets), reference.Unwatched(behind), reference.Metadata(live, corev1.SchemeGroupVersion.WithResource("secrets")))
	expect.NoError(t, err)
	configMapsOf := follow(t, configMaps, configMapInformer, reference.Namespaced(secrets), secretsOfConfigMap)
	s, err := scheme.New(scheme.Functions(corev1.AddToScheme))
	expect.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/exists", admission.NewHandler(s, admission.Validate(reference.Exists(known, secretsOfConfigMap,
		reference.Authorize(client.AuthorizationV1().SubjectAccessReviews().Create, "get"),
		reference.CrossNamespace(func(context.Context, string, cache.ObjectName) (bool, error) { return true, nil })))))
	mux.Handle("/unused", admission.NewHandler(s, admission.ValidateDelete(reference.NotReferenced[*corev1.Secret](configMapsOf))))
	url, ca := webhooktest.Serve(t, mux)

	registerReferences(t, config, url, ca)
	configMap := func(name, secrets string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"secrets": secrets}}
	}
	create := func(client kubernetes.Interface, name, secrets string) error {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name, secrets), metav1.CreateOptions{})
		return err
	}
	wants := func(when string, err error, want ...string) {
		t.Helper()
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %s", when, err, part)
			}
		}
		if len(want) == 0 && err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	run(t, behind)
	run(t, configMapInformer)
	expect.EventuallyTrue(t, "the informers have synced", func() bool { return known.Ready(nil) == nil && configMapsOf.Ready(nil) == nil })
	// The API server takes a moment to ask a new webhook.
	expect.EventuallyTrue(t, "the webhook is asked", func() bool { return apierrors.IsInvalid(create(client, "nothing", "none")) })

	_, err = client.CoreV1().Secrets("default").Create(t.Context(), secret("default", "oven"), metav1.CreateOptions{})
	expect.NoError(t, err)
	wants("a secret that the informer does not know", create(client, "menu", "oven"))
	err = create(client, "wrong", "nails oven glue")
	wants("two that are missing", err, `ConfigMap "wrong" is invalid: [data[secrets]: Not found: "nails", data[secrets]: Not found: "glue"]`)
	if !apierrors.IsInvalid(err) {
		t.Errorf("it is not Invalid: %v", err)
	}

	// A deletionTimestamp that a user writes switches nothing off.
	for what, text := range map[string]string{
		"an apply":                          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"secrets":"nails"}}`,
		"an apply with a deletionTimestamp": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied","deletionTimestamp":"2020-01-01T00:00:00Z"},"data":{"secrets":"nails"}}`,
	} {
		_, err := client.CoreV1().ConfigMaps("default").Patch(t.Context(), "applied", types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "eve"})
		wants(what, err, `ConfigMap "applied" is invalid: data[secrets]: Not found: "nails"`)
	}

	expect.EventuallyTrue(t, "the informer knows the menu", func() bool { return slices.Contains(names(configMapsOf, "default", "oven"), "default/menu") })
	remove := func(opts metav1.DeleteOptions) error {
		return client.CoreV1().Secrets("default").Delete(t.Context(), "oven", opts)
	}
	const used = `secrets "oven" is forbidden: referenced by configmaps: default/menu`
	wants("a secret that is used", remove(metav1.DeleteOptions{}), used)
	wants("a dry run", remove(metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}), used)
	wants("a collection", client.CoreV1().Secrets("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}), used)

	// Bob may write ConfigMaps, and read one Secret.
	bob := userWho(t, cp)
	wants("what bob may read", create(bob, "bobs-menu", "oven"))
	_, err = client.CoreV1().Secrets("default").Create(t.Context(), secret("default", "safe"), metav1.CreateOptions{})
	expect.NoError(t, err)
	const forbidden = `data[secrets]: Forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace `
	wants("what bob may not read", create(bob, "bobs-loot", "safe nails kube-system/nails"), forbidden+`"default"`, forbidden+`"kube-system"`)
	wants("what bob touches only", patch(t, client, "menu", `{"data":{"secrets":"oven safe"}}`))
	wants("what bob touches only", patch(t, bob, "menu", `{"metadata":{"labels":{"touched-by":"bob"}}}`))
	wants("what bob changes", patch(t, bob, "menu", `{"data":{"secrets":"safe nails"}}`), forbidden+`"default"`)

	for _, name := range []string{"menu", "bobs-menu"} {
		expect.NoError(t, client.CoreV1().ConfigMaps("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	expect.EventuallyTrue(t, "the secret can be deleted", func() bool { return remove(metav1.DeleteOptions{}) == nil })
}

func patch(t testing.TB, client kubernetes.Interface, name, text string) error {
	_, err := client.CoreV1().ConfigMaps("default").Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	return err
}

// userWho returns the client of bob.
func userWho(t testing.TB, cp *controlplane.ControlPlane) kubernetes.Interface {
	t.Helper()
	config, err := cp.User("bob")
	expect.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	rbac.Grant(t, cp.Config(), "default", "bob",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"oven"}, Verbs: []string{"get"}})
	return client
}

func registerReferences(t testing.TB, config *rest.Config, url string, ca []byte) {
	t.Helper()
	webhooktest.Register(t, config, url, ca, `
kind: ValidatingWebhookConfiguration
metadata: {name: references}
webhooks:
- name: exists.example.com
  clientConfig: {url: /exists}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  namespaceSelector: &default {matchLabels: {kubernetes.io/metadata.name: default}}
- name: unused.example.com
  clientConfig: {url: /unused}
  rules: [{operations: [DELETE], apiGroups: [""], apiVersions: [v1], resources: [secrets]}]
  namespaceSelector: *default
`)
}

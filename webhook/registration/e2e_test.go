package registration_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/rbac"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/registration"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	mutating    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	validating  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
)

// cluster is a real control plane.
type cluster struct {
	*controlplane.ControlPlane
	dynamic.Interface
}

func newCluster(t testing.TB) cluster {
	t.Helper()
	cp := controlplane.Shared(t)
	client, err := dynamic.NewForConfig(cp.Config())
	expect.NoError(t, err)
	return cluster{cp, client}
}

func (c cluster) get(t testing.TB, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := c.Resource(resource).Get(t.Context(), name, metav1.GetOptions{})
	expect.NoError(t, err)
	return u
}

func (c cluster) patch(t testing.TB, resource schema.GroupVersionResource, name, patch string) {
	t.Helper()
	_, err := c.Resource(resource).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	expect.NoError(t, err)
}

// all are the objects of a shop's registration.
func (c cluster) all(t testing.TB, s *shop, name string) map[schema.GroupVersionResource]*unstructured.Unstructured {
	t.Helper()
	return map[schema.GroupVersionResource]*unstructured.Unstructured{
		definitions: c.get(t, definitions, "pizzas."+s.group),
		mutating:    c.get(t, mutating, name),
		validating:  c.get(t, validating, name),
	}
}

// clientConfigs returns all of an object, by the names of the webhooks.
func clientConfigs(u *unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	if config, ok, _ := unstructured.NestedMap(u.Object, "spec", "conversion", "webhook", "clientConfig"); ok {
		all[""] = config
	}
	hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	for _, h := range hooks {
		all[h.(map[string]any)["name"].(string)] = h.(map[string]any)["clientConfig"].(map[string]any)
	}
	return all
}

// carry returns an error if one of the objects has another caBundle somewhere.
func carry(t testing.TB, pem []byte, objects ...*unstructured.Unstructured) error {
	t.Helper()
	for _, u := range objects {
		configs := clientConfigs(u)
		if len(configs) == 0 {
			return fmt.Errorf("%s %s has no webhooks", u.GetKind(), u.GetName())
		}
		for name, config := range configs {
			if config["caBundle"] != base64.StdEncoding.EncodeToString(pem) {
				return fmt.Errorf("%s %s: the caBundle of %q is %.30v", u.GetKind(), u.GetName(), name, config["caBundle"])
			}
		}
	}
	return nil
}

// carried returns a function that returns an error unless all objects of a shop's registration have the caBundle.
func (c cluster) carried(t testing.TB, s *shop, name string, pem []byte) func() error {
	return func() error {
		t.Helper()
		return carry(t, pem, slices.Collect(maps.Values(c.all(t, s, name)))...)
	}
}

// disowned returns an error if a field manager owns fields of an object.
func disowned(u *unstructured.Unstructured, manager string) error {
	for _, m := range u.GetManagedFields() {
		if m.Manager == manager {
			return fmt.Errorf("%s: %s owns %s", u.GetKind(), manager, m.FieldsV1)
		}
	}
	return nil
}

// unready returns a function that returns an error unless a replica is not ready, with an error that contains the texts.
func unready(hooks *registration.Webhooks, texts ...string) func() error {
	return func() error {
		err := hooks.Ready(nil)
		for _, text := range texts {
			if err == nil || !strings.Contains(err.Error(), text) {
				return fmt.Errorf("no %q in: %w", text, err)
			}
		}
		return nil
	}
}

// fails returns a function that returns an error unless a replica is not ready, with exactly this error.
func fails(hooks *registration.Webhooks, want string) func() error {
	return func() error {
		if diff := cmp.Diff(want, fmt.Sprint(hooks.Ready(nil))); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	}
}

// differ returns a function that returns an error unless these fields differ from what is declared.
func differ(hooks *registration.Webhooks, want ...string) func() error {
	return func() error {
		var got []string
		for _, d := range hooks.Differences() {
			got = append(got, d.Kind+" "+d.Field)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("differences (-want +got):\n%s", diff)
		}
		return nil
	}
}

// kubectl runs it with a manifest, and returns what it says.
func (c cluster) kubectl(t testing.TB, manifest []byte, args ...string) string {
	t.Helper()
	kubeconfig, err := c.Kubeconfig(c.Config())
	expect.NoError(t, err)
	command := exec.CommandContext(t.Context(), c.Kubectl(), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin = bytes.NewReader(manifest)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s\n%s", args, err, output, manifest)
	}
	return string(output)
}

func TestWebhooks_RealControlPlane(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, test := range map[string]func(*testing.T, cluster){
		"the API server accepts the manifests":      manifestsAreAccepted,
		"replicas wait for the manifests":           replicasWaitForManifests,
		"an overwritten CA bundle is written again": overwrittenBundles,
		"nothing but CA bundles is written":         onlyBundlesAreWritten,
		"another program of the same name":          sameManager,
		"a webhook of the next release":             webhookOfTheNextRelease,
		"a webhook that is taken away":              webhookTakenAway,
		"what makes a replica unready":              unreadyReplicas,
		"a CA bundle of somebody else":              foreignBundle,
		"a new CA bundle":                           newBundleIsWritten,
		"three replicas write once":                 replicasWriteOnce,
		"an API server that was away":               awayAndBack,
		"two writers that do not agree":             fightIsSlow,
		"the policy rules":                          rulesSuffice,
		"requests through a Service":                requestsReachTheHandlers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// apply applies the manifests of a declaration as a user who deploys does.
func (c cluster) apply(t testing.TB, hooks *registration.Webhooks) {
	t.Helper()
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	for _, u := range testobj.ParseAll(t, text) {
		resource := map[string]schema.GroupVersionResource{"CustomResourceDefinition": definitions, "MutatingWebhookConfiguration": mutating, "ValidatingWebhookConfiguration": validating}[u.GetKind()]
		_, err := c.Resource(resource).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "deployer"})
		expect.NoError(t, err)
	}
}

// installed has a shop's manifests applied, and a replica that injects the bundle.
func (c cluster) installed(t *testing.T, s *shop, name string, b registration.Bundle) *registration.Webhooks {
	t.Helper()
	hooks := declare(t, name, s.options()...)
	c.apply(t, hooks)
	inject(t, hooks, c.Config(), b)
	expect.Eventually(t, ready(hooks))
	return hooks
}

func manifestsAreAccepted(t *testing.T, c cluster) {
	s := newShop(t, "manifests.example.com")
	hooks := declare(t, "manifests", s.options()...)
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	for _, pem := range [][]byte{nil, ca, nil} { // kubectl takes away what it has applied
		text, err := hooks.Manifests(pem)
		expect.NoError(t, err)
		for _, args := range [][]string{
			{"apply", "--validate=strict", "--dry-run=server", "-f", "-"},
			{"apply", "--validate=strict", "-f", "-"},
		} {
			if output := c.kubectl(t, text, args...); strings.Contains(output, "Warning") {
				t.Error(output)
			}
		}
		for _, u := range c.all(t, s, "manifests") {
			if len(pem) > 0 {
				expect.NoError(t, carry(t, pem, u))
			} else if carry(t, nil, u) == nil {
				t.Errorf("%s has a caBundle", u.GetKind())
			}
		}
	}
	inject(t, hooks, c.Config(), newBundle(ca))
	expect.Eventually(t, ready(hooks))
	if got := hooks.Differences(); len(got) > 0 {
		t.Errorf("the API server's defaults are differences: %v", got)
	}
	// A bundle of the replica's survives manifests without one, also those of kubectl.
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	c.kubectl(t, text, "apply", "-f", "-")
	expect.NoError(t, c.carried(t, s, "manifests", ca)())
}

func replicasWaitForManifests(t *testing.T, c cluster) {
	s := newShop(t, "nothing.example.com")
	hooks := declare(t, "nothing", s.options()...)
	expect.ErrorContains(t, hooks.Ready(nil), "is not running")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	stop := inject(t, hooks, c.Config(), newBundle(ca))
	expect.Eventually(t, fails(hooks, "registration: CustomResourceDefinition pizzas.nothing.example.com: not in the cluster: apply the manifests\n"+
		"registration: MutatingWebhookConfiguration nothing: not in the cluster: apply the manifests\n"+
		"registration: ValidatingWebhookConfiguration nothing: not in the cluster: apply the manifests"))
	expect.ErrorContains(t, hooks.Inject(t.Context(), c.Config(), nil), "is running already")
	c.apply(t, hooks)
	t.Logf("ready %s after the manifests", expect.Eventually(t, ready(hooks)))
	expect.NoError(t, hooks.CheckBundle(ca))
	other, _, _ := webhooktest.SelfSigned(t, "localhost")
	if err := hooks.CheckBundle(append(other, ca...)); err == nil {
		t.Error("a certificate is trusted that was never written")
	}
	expect.NoError(t, c.carried(t, s, "nothing", ca)())
	stop()
	if err := hooks.Ready(nil); err == nil {
		t.Error("after it has run, the check passes")
	}
}

func overwrittenBundles(t *testing.T, c cluster) {
	s := newShop(t, "repair.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	hooks := c.installed(t, s, "repair", newBundle(ca))
	theirs, _, _ := webhooktest.SelfSigned(t, "somebody")
	encoded := base64.StdEncoding.EncodeToString(theirs)
	for _, damage := range []struct {
		what     string
		resource schema.GroupVersionResource
		patch    string
	}{
		{"another bundle in the definition", definitions, `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig/caBundle","value":"` + encoded + `"}]`},
		{"another bundle for the mutating webhook", mutating, `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"` + encoded + `"}]`},
		{"garbage for the validating webhook", validating, `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`},
		{"no bundle", definitions, `[{"op":"remove","path":"/spec/conversion/webhook/clientConfig/caBundle"}]`},
	} {
		begin := time.Now()
		c.patch(t, damage.resource, c.all(t, s, "repair")[damage.resource].GetName(), damage.patch)
		expect.Eventually(t, func() error { return carry(t, ca, c.all(t, s, "repair")[damage.resource]) })
		t.Logf("%s was repaired after %s", damage.what, time.Since(begin))
		expect.Eventually(t, ready(hooks))
	}
	expect.NoError(t, c.Resource(mutating).Delete(t.Context(), "repair", metav1.DeleteOptions{}))
	c.apply(t, hooks)
	expect.Eventually(t, func() error { return carry(t, ca, c.get(t, mutating, "repair")) })
}

// onlyBundlesAreWritten changes all that a replica declares. The changes stay.
func onlyBundlesAreWritten(t *testing.T, c cluster) {
	s := newShop(t, "only.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	b := newBundle(ca)
	hooks := c.installed(t, s, "only", b)
	expect.Eventually(t, func() error {
		for _, u := range c.all(t, s, "only") {
			if err := disowned(u, "only"); err != nil {
				return err
			}
		}
		return nil
	})
	c.patch(t, definitions, "pizzas.only.example.com", `[{"op":"replace","path":"/spec/conversion/webhook/conversionReviewVersions","value":["v1"]}]`)
	c.patch(t, mutating, "only", `[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":3},{"op":"add","path":"/webhooks/0/matchConditions","value":[{"name":"never","expression":"false"}]},
		{"op":"add","path":"/webhooks/-","value":{"name":"theirs.example.com","clientConfig":{"url":"https://theirs.example.com/"},"sideEffects":"None","admissionReviewVersions":["v1"]}}]`)
	c.patch(t, validating, "only", `[{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/other"},{"op":"remove","path":"/webhooks/0/rules"}]`)
	expect.Eventually(t, differ(hooks,
		"CustomResourceDefinition spec.conversion.webhook.conversionReviewVersions",
		"MutatingWebhookConfiguration webhooks[default.pizzas.only.example.com].matchConditions",
		"MutatingWebhookConfiguration webhooks[default.pizzas.only.example.com].timeoutSeconds",
		"ValidatingWebhookConfiguration webhooks[validate.pizzas.only.example.com].clientConfig.service.path",
		"ValidatingWebhookConfiguration webhooks[validate.pizzas.only.example.com].rules",
	))
	if got, want := hooks.Differences()[2].String(), "MutatingWebhookConfiguration only: webhooks[default.pizzas.only.example.com].timeoutSeconds is 3, expected 10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	expect.NoError(t, hooks.Ready(nil)) // it can be called
	before := c.all(t, s, "only")
	other, _, _ := webhooktest.SelfSigned(t, "other")
	b.set(other)
	expect.Eventually(t, func() error { return hooks.CheckBundle(other) })
	for resource, after := range c.all(t, s, "only") {
		for _, u := range []*unstructured.Unstructured{before[resource], after} {
			u.SetManagedFields(nil)
			u.SetResourceVersion("")
			u.SetGeneration(0)
			unstructured.RemoveNestedField(u.Object, "status")
			hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
			for _, h := range hooks {
				delete(h.(map[string]any)["clientConfig"].(map[string]any), "caBundle")
			}
			if len(hooks) > 0 {
				u.Object["webhooks"] = hooks
			}
			unstructured.RemoveNestedField(u.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		}
		if diff := cmp.Diff(before[resource].Object, after.Object); diff != "" {
			t.Errorf("%s (-before +after):\n%s", resource.Resource, diff)
		}
	}
	if bundle := clientConfigs(c.get(t, mutating, "only"))["theirs.example.com"]["caBundle"]; bundle != nil {
		t.Errorf("a webhook of somebody else has the bundle %v", bundle)
	}
}

// webhookOfTheNextRelease applies the manifests of the next release while replicas of this one run.
func webhookOfTheNextRelease(t *testing.T, c cluster) {
	s := newShop(t, "next.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	old := declare(t, "next", s.definitions(), s.noConversion(), s.validating())
	c.apply(t, old)
	inject(t, old, c.Config(), newBundle(ca))
	expect.Eventually(t, ready(old))
	next := declare(t, "next", s.definitions(), s.conversion(), s.mutating(), s.validating(func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(1)) }))
	c.apply(t, next)
	// The replicas of this release write the CA bundle of the next.
	expect.Eventually(t, c.carried(t, s, "next", ca))
	expect.Eventually(t, differ(old,
		"CustomResourceDefinition spec.conversion.webhook",
		"MutatingWebhookConfiguration webhooks[default.pizzas.next.example.com]",
		"ValidatingWebhookConfiguration webhooks[validate.pizzas.next.example.com].timeoutSeconds",
	))
	inject(t, next, c.Config(), newBundle(ca))
	expect.Eventually(t, ready(next))
	if got := next.Differences(); len(got) > 0 {
		t.Errorf("the next release differs from itself: %v", got)
	}
}

// webhookTakenAway applies manifests without a webhook and a conversion that have the replica's
// CA bundle.
func webhookTakenAway(t *testing.T, c cluster) {
	for name, apply := range map[string]func(*registration.Webhooks){
		"gone": func(hooks *registration.Webhooks) { c.apply(t, hooks) },
		"gone-kubectl": func(hooks *registration.Webhooks) {
			text, err := hooks.Manifests(nil)
			expect.NoError(t, err)
			c.kubectl(t, text, "apply", "-f", "-")
		},
	} {
		s := newShop(t, name+".example.com")
		ca, _, _ := webhooktest.SelfSigned(t, "localhost")
		second := registration.Validating("second.pizzas.example.com", "/second", admit(s.validate()))
		old := declare(t, name, append(s.options(), second)...)
		next := declare(t, name, s.definitions(), s.noConversion(), s.mutating(), s.validating())
		inject(t, old, c.Config(), newBundle(ca))
		apply(old)
		expect.Eventually(t, func() error {
			for _, u := range c.all(t, s, name) {
				if err := errors.Join(carry(t, ca, u), disowned(u, name)); err != nil {
					return err
				}
			}
			return nil
		})
		apply(next)
		if configs := clientConfigs(c.get(t, validating, name)); len(configs) != 1 {
			t.Errorf("the webhooks are %v", configs)
		}
		expect.NoError(t, carry(t, ca, c.get(t, validating, name)))
		definition := c.get(t, definitions, "pizzas."+s.group)
		if strategy, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion"); strategy["strategy"] != "None" || len(strategy) != 1 {
			t.Errorf("the conversion is %v", strategy)
		}
	}
}

func unreadyReplicas(t *testing.T, c cluster) {
	s := newShop(t, "unready.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	hooks := c.installed(t, s, "unready", newBundle(ca))
	const definition = "registration: CustomResourceDefinition pizzas.unready.example.com: "
	without := declare(t, "unready", s.definitions(), s.noConversion(), s.mutating(), s.validating())
	stop := inject(t, without, c.Config(), newBundle(ca))
	expect.Eventually(t, fails(without, definition+`spec.conversion.webhook is {"service":{"name":"pizza-operator","namespace":"pizza-system","path":"/convert","port":443}}, expected absent`))
	c.patch(t, definitions, "pizzas.unready.example.com", `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	expect.Eventually(t, ready(without))
	stop()
	expect.Eventually(t, fails(hooks, definition+`spec.conversion.strategy is "None", expected "Webhook"`+"\n"+
		`spec.conversion.webhook is absent, expected {"clientConfig":{"service":{"name":"pizza-operator","namespace":"pizza-system","path":"/convert","port":443}},"conversionReviewVersions":["v1","v1beta1"]}`))
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	c.kubectl(t, text, "apply", "--server-side", "--force-conflicts", "-f", "-")
	expect.Eventually(t, ready(hooks))
	c.patch(t, mutating, "unready", `[{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://somebody.example.com/"}}]`)
	expect.Eventually(t, fails(hooks, `registration: MutatingWebhookConfiguration unready: webhooks[default.pizzas.unready.example.com].clientConfig.service is absent, expected {"name":"pizza-operator","namespace":"pizza-system","path":"/admit","port":443}`+"\n"+
		`webhooks[default.pizzas.unready.example.com].clientConfig.url is "https://somebody.example.com/", expected absent`))
}

// sameManager has a program that writes other fields under the field manager of the replicas, such as kubectl label. They stay its own.
func sameManager(t *testing.T, c cluster) {
	s := newShop(t, "same.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	hooks := declare(t, "same", s.options()...)
	c.apply(t, hooks)
	for resource, u := range c.all(t, s, "same") {
		_, err := c.Resource(resource).Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"pizza"}}}`),
			metav1.PatchOptions{FieldManager: "same"})
		expect.NoError(t, err)
	}
	inject(t, hooks, c.Config(), newBundle(ca))
	expect.Eventually(t, func() error {
		for _, u := range c.all(t, s, "same") {
			if err := carry(t, ca, u); err != nil {
				return err
			}
			var owned []string
			for _, m := range u.GetManagedFields() {
				if m.Manager == "same" {
					owned = append(owned, m.FieldsV1.GetRawString())
				}
			}
			if len(owned) != 1 || strings.Contains(owned[0], "caBundle") || !strings.Contains(owned[0], "f:team") {
				return fmt.Errorf("%s: same owns %q", u.GetKind(), owned)
			}
		}
		return nil
	})
}

func foreignBundle(t *testing.T, c cluster) {
	s := newShop(t, "cainjector.example.com")
	hooks := c.installed(t, s, "cainjector", nil)
	theirs, _, _ := webhooktest.SelfSigned(t, "somebody")
	encoded := base64.StdEncoding.EncodeToString(theirs)
	c.patch(t, definitions, "pizzas.cainjector.example.com", `[{"op":"add","path":"/spec/conversion/webhook/clientConfig/caBundle","value":"`+encoded+`"}]`)
	for _, resource := range []schema.GroupVersionResource{mutating, validating} {
		c.patch(t, resource, "cainjector", `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+encoded+`"}]`)
	}
	expect.Eventually(t, func() error { return hooks.CheckBundle(theirs) })
	expect.NoError(t, hooks.Ready(nil))
	for _, u := range c.all(t, s, "cainjector") {
		expect.NoError(t, disowned(u, "cainjector"))
	}
}

func newBundleIsWritten(t *testing.T, c cluster) {
	s := newShop(t, "bundle.example.com")
	hooks := declare(t, "bundle", s.options()...)
	c.apply(t, hooks)
	b := newBundle(nil)
	inject(t, hooks, c.Config(), b)
	expect.Eventually(t, unready(hooks, "pizzas.bundle.example.com: no CA certificate yet"))
	first, _, _ := webhooktest.SelfSigned(t, "first")
	second, _, _ := webhooktest.SelfSigned(t, "second")
	for _, pem := range [][]byte{first, slices.Concat(first, second), second} {
		b.set(pem)
		t.Logf("written after %s", expect.Eventually(t, c.carried(t, s, "bundle", pem)))
		expect.Eventually(t, ready(hooks))
		expect.Eventually(t, func() error { return hooks.CheckBundle(pem) }) // it hears of the write a moment later
	}
	b.set([]byte("garbage"))
	expect.Eventually(t, unready(hooks, "CA bundle: data does not contain any valid RSA or ECDSA certificates"))
	expect.NoError(t, c.carried(t, s, "bundle", second)())
}

func replicasWriteOnce(t *testing.T, c cluster) {
	s := newShop(t, "replicas.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	var replicas []*registration.Webhooks
	for range 3 {
		hooks := declare(t, "replicas", s.options()...)
		replicas = append(replicas, hooks)
		inject(t, hooks, c.Config(), newBundle(ca))
	}
	c.apply(t, replicas[0])
	for _, hooks := range replicas {
		expect.Eventually(t, ready(hooks))
	}
	for _, resource := range []schema.GroupVersionResource{mutating, validating} {
		if g := c.get(t, resource, "replicas").GetGeneration(); g != 2 { // the manifest, and the bundle
			t.Errorf("three replicas made generation %d", g)
		}
	}
}

// awayAndBack puts a proxy before the API server that goes away and comes back.
func awayAndBack(t *testing.T, c cluster) {
	s := newShop(t, "away.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	target := strings.TrimPrefix(c.Config().Host, "https://")
	away := proxy(t, listener, target)
	config := c.Config()
	config.Host = "https://" + listener.Addr().String()
	hooks := declare(t, "away", s.options()...)
	c.apply(t, hooks)
	inject(t, hooks, config, newBundle(ca))
	expect.Eventually(t, ready(hooks))
	away()
	c.patch(t, mutating, "away", `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`)
	time.Sleep(time.Second)
	if err := hooks.Ready(nil); err != nil {
		t.Errorf("as long as nobody knows better, the check says %v", err)
	}
	listener, err = net.Listen("tcp", listener.Addr().String())
	expect.NoError(t, err)
	defer proxy(t, listener, target)()
	took := expect.Eventually(t, func() error { return carry(t, ca, c.get(t, mutating, "away")) })
	t.Logf("repaired %s after it has come back", took)
}

// proxy passes on connections until the returned function closes all.
func proxy(t *testing.T, listener net.Listener, target string) (stop func()) {
	var mu sync.Mutex
	stopped := false
	conns := []io.Closer{listener}
	keep := func(c io.Closer) bool {
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
		return !stopped
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil || !keep(in) || !keep(out) {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		for _, c := range conns {
			c.Close()
		}
	}
}

func fightIsSlow(t *testing.T, c cluster) {
	s := newShop(t, "fight.example.com")
	ours, _, _ := webhooktest.SelfSigned(t, "ours")
	theirs, _, _ := webhooktest.SelfSigned(t, "theirs")
	hooks := c.installed(t, s, "fight", newBundle(ours))
	before, begin := c.get(t, mutating, "fight").GetGeneration(), time.Now()
	inject(t, declare(t, "fight", s.options()...), c.Config(), newBundle(theirs))
	expect.Eventually(t, unready(hooks, `.clientConfig.caBundle lacks the operator's CA certificates: another writer changes the CA bundle repeatedly`))
	took := time.Since(begin)
	if n := c.get(t, mutating, "fight").GetGeneration() - before; n > 2*(5+int64(took/time.Second)+2) {
		t.Errorf("it was written %d times in %s", n, took)
	}
}

// user returns the configuration of a new user with these rules and no others.
func (c cluster) user(t testing.TB, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	rbac.Grant(t, c.Config(), "", name, rules...)
	config, err := c.User(name)
	expect.NoError(t, err)
	return config
}

func rulesSuffice(t *testing.T, c cluster) {
	s := newShop(t, "rbac.example.com")
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	hooks := declare(t, "rbac", s.options()...)
	c.apply(t, hooks)
	rules := hooks.PolicyRules()
	for i, rule := range rules {
		if !slices.Contains(rule.Verbs, "update") {
			continue
		}
		t.Run(fmt.Sprint("without update ", rule.Resources), func(t *testing.T) {
			less := slices.Clone(rules)
			less[i].Verbs = []string{"get", "watch"}
			hooks := declare(t, "rbac", s.options()...)
			other, _, _ := webhooktest.SelfSigned(t, "other") // which is to be written
			defer inject(t, hooks, c.user(t, fmt.Sprintf("without-update-%d", i), less), newBundle(other))()
			expect.Eventually(t, unready(hooks, "forbidden", "cannot update resource \""+rule.Resources[0]))
		})
	}
	inject(t, hooks, c.user(t, "with-all", rules), newBundle(ca))
	expect.Eventually(t, ready(hooks))
	expect.NoError(t, hooks.CheckBundle(ca))
	c.patch(t, validating, "rbac", `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`)
	expect.Eventually(t, func() error { return carry(t, ca, c.get(t, validating, "rbac")) })
	expect.Eventually(t, func() error {
		events, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "reason=CABundleOverwritten,involvedObject.kind=ValidatingWebhookConfiguration,involvedObject.name=rbac",
		})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("no Event")
		}
		return err
	})
}

// requestsReachTheHandlers has the API server resolve a Service. One of type ExternalName is
// resolved without endpoints: ResolveCluster in apiserver/pkg/util/proxy.
func requestsReachTheHandlers(t *testing.T, c cluster) {
	s := newShop(t, "service.example.com")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	hooks, err := registration.New("service", append(s.options(),
		registration.Service("pizza-system", "pizza-operator"),
		registration.ServicePort(int32(listener.Addr().(*net.TCPAddr).Port)))...)
	expect.NoError(t, err)
	ca, chain, key := webhooktest.SelfSigned(t, hooks.Hosts()[0])
	certs := webhooktest.Files(t, chain, key)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- webhook.Serve(ctx, listener, hooks, certs) }()
	defer func() {
		cancel()
		expect.NoError(t, <-served)
	}()

	client, err := kubernetes.NewForConfig(c.Config())
	expect.NoError(t, err)
	for _, namespace := range []string{"pizza-system", "pizzeria"} {
		_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		expect.NoError(t, err)
	}
	_, err = client.CoreV1().Services("pizza-system").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "pizza-operator"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	expect.NoError(t, err)
	c.apply(t, hooks)
	inject(t, hooks, c.Config(), newBundle(ca))
	expect.Eventually(t, ready(hooks))

	old := schema.GroupVersionResource{Group: s.group, Version: "v1alpha1", Resource: "pizzas"}
	create := func(namespace, topping string) (*unstructured.Unstructured, error) {
		u := s.pizza(fmt.Sprint("p", time.Now().UnixNano()), topping)
		return c.Resource(old).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	}
	// The API server takes a moment until it looks at new webhooks.
	expect.Eventually(t, func() error {
		if _, err := create("pizzeria", "pineapple"); !apierrors.IsInvalid(err) {
			t.Log(time.Now(), err)
			return fmt.Errorf("pineapple: %w", err)
		}
		return nil
	})
	var created *unstructured.Unstructured
	expect.Eventually(t, func() (err error) {
		created, err = create("pizzeria", "salami")
		if seen, _, _ := unstructured.NestedInt64(created.Object, "spec", "seen"); err == nil && seen != 1 {
			err = fmt.Errorf("the mutating webhook was called %d times", seen)
		}
		return err
	})
	converted, err := c.Resource(s.resource()).Namespace("pizzeria").Get(t.Context(), created.GetName(), metav1.GetOptions{})
	expect.NoError(t, err)
	if diff := cmp.Diff(map[string]any{"toppings": "salami", "seen": int64(1)}, converted.Object["spec"]); diff != "" {
		t.Errorf("the pizza in v1 (-want +got):\n%s", diff)
	}
	// In the operator's own namespace they are not called.
	own, err := create("pizza-system", "pineapple")
	expect.NoError(t, err)
	if diff := cmp.Diff(map[string]any{"topping": "pineapple"}, own.Object["spec"]); diff != "" {
		t.Errorf("the operator's own pizza (-want +got):\n%s", diff)
	}
}

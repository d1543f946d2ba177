package registration_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

	"github.com/crdkit/crdkit/internal/controlplane"
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
	check(t, err)
	return cluster{cp, client}
}

func (c cluster) get(t testing.TB, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := c.Resource(resource).Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	return u
}

// define creates the definitions of a shop, without a conversion stanza.
func (c cluster) define(t testing.TB, s *shop) {
	t.Helper()
	for _, u := range objects(t, s.definition()) {
		_, err := c.Resource(definitions).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "gitops"})
		check(t, err)
	}
}

func (c cluster) patch(t testing.TB, resource schema.GroupVersionResource, name, patch string) {
	t.Helper()
	_, err := c.Resource(resource).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	check(t, err)
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

// versions are the resource versions of the objects of a shop's registration.
func (c cluster) versions(t testing.TB, s *shop, name string) (versions []string) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{definitions, mutating, validating} {
		versions = append(versions, c.all(t, s, name)[resource].GetResourceVersion())
	}
	return versions
}

// applied returns an error if the manager has written an object by other means than apply.
func applied(manager string, u *unstructured.Unstructured) error {
	for _, m := range u.GetManagedFields() {
		if m.Manager == manager && m.Operation != metav1.ManagedFieldsOperationApply {
			return fmt.Errorf("%s %s has managed fields of %s by %s: %s", u.GetKind(), u.GetName(), manager, m.Operation, m.FieldsV1)
		}
	}
	return nil
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

// kubectl runs it with a manifest, and returns what it says.
func (c cluster) kubectl(t testing.TB, manifest []byte, args ...string) string {
	t.Helper()
	kubeconfig, err := c.Kubeconfig(c.Config())
	check(t, err)
	command := exec.CommandContext(t.Context(), c.Kubectl(), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin = bytes.NewReader(manifest)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s\n%s", args, err, output, manifest)
	}
	return string(output)
}

func TestOnARealControlPlane(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, test := range map[string]func(*testing.T, cluster){
		"the manifests are accepted":                                     manifestsAreAccepted,
		"reconciling from nothing":                                       reconcilingFromNothing,
		"what somebody changes is repaired at once":                      repairedAtOnce,
		"a definition keeps its fields and its managers":                 definitionKeepsItsManagers,
		"the webhooks of others stay":                                    webhooksOfOthersStay,
		"a CA bundle of somebody else is left alone":                     foreignBundleIsLeftAlone,
		"a new bundle is written, and none is not":                       newBundleIsWritten,
		"replicas of one declaration write once":                         replicasWriteOnce,
		"of different declarations at once, one wins":                    oneWins,
		"in a rolling update the newest wins":                            newestWins,
		"what a new release has no more is taken away":                   goneIsTakenAway,
		"an API server that was away finds it right again":               awayAndBack,
		"of a Service and a URL one holds":                               onePlaceHolds,
		"a fight is not fought at full speed":                            fightIsSlow,
		"the policy rules suffice, and each of their verbs is necessary": rulesSuffice,
		"requests reach the handlers through a Service":                  requestsReachTheHandlers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func manifestsAreAccepted(t *testing.T, c cluster) {
	s := newShop(t, "manifests.example.com")
	hooks := declare(t, "manifests", append(s.options(), registration.Annotations(map[string]string{"cert-manager.io/inject-ca-from": "pizza-system/ca"}))...)
	ca, _, _ := newCA(t, "localhost")
	for _, pem := range [][]byte{nil, ca} {
		text, err := hooks.Manifests(pem)
		check(t, err)
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
				check(t, carry(t, pem, u))
			} else if carry(t, nil, u) == nil {
				t.Errorf("%s has a caBundle", u.GetKind())
			}
			if diff := cmp.Diff("pizza-system/ca", u.GetAnnotations()["cert-manager.io/inject-ca-from"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", u.GetKind(), diff)
			}
		}
	}
	// What was applied by hand is what the reconciler would write, but for its annotation.
	before := c.all(t, s, "manifests")
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	for resource, after := range c.all(t, s, "manifests") {
		for _, u := range []*unstructured.Unstructured{before[resource], after} {
			u.SetManagedFields(nil)
			u.SetResourceVersion("")
			unstructured.RemoveNestedField(u.Object, "status")
			annotations := u.GetAnnotations()
			delete(annotations, registration.DeclaredAnnotation)
			u.SetAnnotations(annotations)
		}
		if diff := cmp.Diff(before[resource].Object, after.Object); diff != "" {
			t.Errorf("%s (-applied +reconciled):\n%s", resource.Resource, diff)
		}
	}
}

func reconcilingFromNothing(t *testing.T, c cluster) {
	s := newShop(t, "nothing.example.com")
	hooks := declare(t, "nothing", s.options()...)
	if err := hooks.Check(nil); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("before it runs, the check says %v", err)
	}
	ca, _, _ := newCA(t, "localhost")
	stop := reconcile(t, hooks, c.Config(), newBundle(ca))
	eventually(t, func() error {
		const want = "registration: CustomResourceDefinition pizzas.nothing.example.com: it is not in the cluster: apply the manifests first, a definition is not created here"
		if err := hooks.Check(nil); err == nil || err.Error() != want {
			return fmt.Errorf("without the definition, the check says %w", err)
		}
		return nil
	})
	if err := hooks.Carry(ca); err == nil || !strings.Contains(err.Error(), "pizzas.nothing.example.com: it is not in the cluster") {
		t.Errorf("without the definition, Carry says %v", err)
	}
	if _, err := c.Resource(definitions).Get(t.Context(), "pizzas.nothing.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the definition: %v", err)
	}
	if err := hooks.Reconcile(t.Context(), c.Config(), nil); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second Reconcile says %v", err)
	}
	c.define(t, s)
	t.Logf("registered %s after the definition", eventually(t, ready(hooks)))
	check(t, hooks.Carry(ca))
	other, _, _ := newCA(t, "localhost")
	if err := hooks.Carry(append(other, ca...)); err == nil {
		t.Error("a certificate is carried that nobody has written")
	}
	for _, u := range c.all(t, s, "nothing") {
		check(t, carry(t, ca, u))
	}
	stop()
	if err := hooks.Check(nil); err == nil {
		t.Error("after it has run, the check passes")
	}
}

func repairedAtOnce(t *testing.T, c cluster) {
	s := newShop(t, "repair.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	hooks := declare(t, "repair", s.options()...)
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	want := map[schema.GroupVersionResource]map[string]map[string]any{}
	for resource, u := range c.all(t, s, "repair") {
		want[resource] = clientConfigs(u)
	}
	theirs, _, _ := newCA(t, "somebody")
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
		{"no conversion", definitions, `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`},
		{"a url in the definition", definitions, `[{"op":"replace","path":"/spec/conversion/webhook/clientConfig","value":{"url":"https://somebody.example.com/"}}]`},
		{"a url for the mutating webhook", mutating, `[{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://somebody.example.com/"}}]`},
		{"no webhooks", validating, `[{"op":"remove","path":"/webhooks"}]`},
	} {
		begin := time.Now()
		c.patch(t, damage.resource, c.all(t, s, "repair")[damage.resource].GetName(), damage.patch)
		eventually(t, func() error {
			if diff := cmp.Diff(want[damage.resource], clientConfigs(c.all(t, s, "repair")[damage.resource])); diff != "" {
				return fmt.Errorf("%s (-want +got):\n%s", damage.what, diff)
			}
			return nil
		})
		t.Logf("%s was repaired after %s", damage.what, time.Since(begin))
		eventually(t, ready(hooks))
	}
	// Nothing stays behind that would keep half a webhook there, were it not declared any more.
	eventually(t, func() error { return applied("repair", c.get(t, mutating, "repair")) })
	eventually(t, ready(hooks))
	check(t, c.Resource(mutating).Delete(t.Context(), "repair", metav1.DeleteOptions{}))
	eventually(t, func() error {
		_, err := c.Resource(mutating).Get(t.Context(), "repair", metav1.GetOptions{})
		return err
	})
}

func definitionKeepsItsManagers(t *testing.T, c cluster) {
	s := newShop(t, "gitops.example.com")
	apply := func() {
		for _, u := range objects(t, s.definition()) {
			u.SetCreationTimestamp(metav1.Time{})
			unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
			unstructured.RemoveNestedField(u.Object, "status")
			_, err := c.Resource(definitions).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "gitops"})
			check(t, err)
		}
	}
	apply()
	owned := func() string {
		for _, m := range c.get(t, definitions, "pizzas.gitops.example.com").GetManagedFields() {
			if m.Manager == "gitops" {
				return m.FieldsV1.String()
			}
		}
		return ""
	}
	before, fields := c.get(t, definitions, "pizzas.gitops.example.com"), owned()
	ca, _, _ := newCA(t, "localhost")
	hooks := declare(t, "keeps", s.options()...)
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	apply() // without force: there is no conflict
	eventually(t, ready(hooks))
	if diff := cmp.Diff(fields, owned()); diff != "" {
		t.Errorf("what gitops manages (-before +after):\n%s", diff)
	}
	after := c.get(t, definitions, "pizzas.gitops.example.com")
	check(t, carry(t, ca, after))
	for _, u := range []*unstructured.Unstructured{before, after} {
		unstructured.RemoveNestedField(u.Object, "spec", "conversion")
		unstructured.RemoveNestedField(u.Object, "status")
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
	}
	annotations := after.GetAnnotations()
	delete(annotations, registration.DeclaredAnnotation)
	if after.SetAnnotations(annotations); len(annotations) == 0 {
		after.SetAnnotations(nil)
	}
	if diff := cmp.Diff(before.Object, after.Object); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func webhooksOfOthersStay(t *testing.T, c cluster) {
	s := newShop(t, "others.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	hooks := declare(t, "others", s.options()...)
	theirs := map[string]any{
		"name":                    "theirs.example.com",
		"clientConfig":            map[string]any{"url": "https://theirs.example.com/"},
		"sideEffects":             "None",
		"admissionReviewVersions": []any{"v1"},
	}
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
		"metadata": map[string]any{"name": "others"}, "webhooks": []any{theirs},
	}}
	_, err := c.Resource(mutating).Create(t.Context(), foreign, metav1.CreateOptions{FieldManager: "somebody"})
	check(t, err)
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	check(t, hooks.Carry(ca))
	configs := clientConfigs(c.get(t, mutating, "others"))
	if diff := cmp.Diff(theirs["clientConfig"], any(configs["theirs.example.com"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(configs) != 2 {
		t.Errorf("there are %d webhooks", len(configs))
	}
}

func foreignBundleIsLeftAlone(t *testing.T, c cluster) {
	s := newShop(t, "cainjector.example.com")
	c.define(t, s)
	hooks := declare(t, "cainjector", s.options()...)
	defer reconcile(t, hooks, c.Config(), nil)()
	eventually(t, ready(hooks))
	theirs, _, _ := newCA(t, "somebody")
	encoded := base64.StdEncoding.EncodeToString(theirs)
	c.patch(t, definitions, "pizzas.cainjector.example.com", `[{"op":"add","path":"/spec/conversion/webhook/clientConfig/caBundle","value":"`+encoded+`"}]`)
	for _, resource := range []schema.GroupVersionResource{mutating, validating} {
		c.patch(t, resource, "cainjector", `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"`+encoded+`"}]`)
	}
	// What is ours is repaired, and what is not stays.
	c.patch(t, mutating, "cainjector", `[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":3}]`)
	eventually(t, func() error {
		hooks, _, _ := unstructured.NestedSlice(c.get(t, mutating, "cainjector").Object, "webhooks")
		if got := hooks[0].(map[string]any)["timeoutSeconds"]; got != int64(10) {
			return fmt.Errorf("the timeout is %v", got)
		}
		return nil
	})
	for _, u := range c.all(t, s, "cainjector") {
		check(t, carry(t, theirs, u))
	}
	check(t, hooks.Carry(theirs))
}

func newBundleIsWritten(t *testing.T, c cluster) {
	s := newShop(t, "bundle.example.com")
	c.define(t, s)
	hooks := declare(t, "bundle", s.options()...)
	b := newBundle(nil)
	defer reconcile(t, hooks, c.Config(), b)()
	eventually(t, func() error {
		if err := hooks.Check(nil); err == nil || !strings.Contains(err.Error(), "pizzas.bundle.example.com: there is no CA certificate yet") {
			return fmt.Errorf("without a certificate, the check says %w", err)
		}
		return nil
	})
	if _, err := c.Resource(mutating).Get(t.Context(), "bundle", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without a certificate, something was written: %v", err)
	}
	first, _, _ := newCA(t, "first")
	second, _, _ := newCA(t, "second")
	for _, pem := range [][]byte{first, slices.Concat(first, second), second} {
		b.set(pem)
		t.Logf("written after %s", eventually(t, func() error {
			for _, resource := range []schema.GroupVersionResource{mutating, validating} {
				if _, err := c.Resource(resource).Get(t.Context(), "bundle", metav1.GetOptions{}); err != nil {
					return err
				}
			}
			return carry(t, pem, slices.Collect(maps.Values(c.all(t, s, "bundle")))...)
		}))
		eventually(t, ready(hooks))
		check(t, hooks.Carry(pem))
	}
	b.set([]byte("garbage"))
	eventually(t, func() error {
		if err := hooks.Check(nil); err == nil || !strings.Contains(err.Error(), "the CA bundle: it has no PEM certificates") {
			return fmt.Errorf("with garbage, the check says %w", err)
		}
		return nil
	})
	for _, u := range c.all(t, s, "bundle") {
		check(t, carry(t, second, u))
	}
}

func replicasWriteOnce(t *testing.T, c cluster) {
	s := newShop(t, "replicas.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	var replicas []*registration.Webhooks
	for range 3 { // at once
		hooks := declare(t, "replicas", s.options()...)
		replicas = append(replicas, hooks)
		defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	}
	for _, hooks := range replicas {
		eventually(t, ready(hooks))
	}
	before := c.versions(t, s, "replicas")
	hooks := declare(t, "replicas", s.options()...)
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))
	time.Sleep(500 * time.Millisecond)
	if diff := cmp.Diff(before, c.versions(t, s, "replicas")); diff != "" {
		t.Errorf("the resource versions (-before +after):\n%s", diff)
	}
	for _, resource := range []schema.GroupVersionResource{mutating, validating} {
		if g := c.get(t, resource, "replicas").GetGeneration(); g != 1 {
			t.Errorf("three replicas made generation %d", g)
		}
	}
}

func oneWins(t *testing.T, c cluster) {
	s := newShop(t, "race.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	var replicas []*registration.Webhooks
	for seconds := range 4 {
		hooks := declare(t, "race", s.definitions(), registration.Conversion(fmt.Sprint("/convert-", seconds), convert(s)),
			s.mutating(registration.Timeout(time.Duration(seconds+1)*time.Second)), s.validating())
		replicas = append(replicas, hooks)
		defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	}
	for _, hooks := range replicas {
		eventually(t, ready(hooks))
		eventually(t, func() error { return hooks.Carry(ca) })
	}
	before := c.versions(t, s, "race")
	time.Sleep(500 * time.Millisecond)
	if diff := cmp.Diff(before, c.versions(t, s, "race")); diff != "" {
		t.Errorf("the resource versions go on (-before +after):\n%s", diff)
	}
	// Each may create it before it has seen it, and then each later claim may replace each earlier one.
	if g := c.get(t, mutating, "race").GetGeneration(); g > 4+3+2+1 {
		t.Errorf("four replicas made generation %d", g)
	}
}

// onePlaceHolds starts a replica with a URL, as on a developer's machine, beside one with a Service.
func onePlaceHolds(t *testing.T, c cluster) {
	s := newShop(t, "places.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	service := declare(t, "places", s.options()...)
	defer reconcile(t, service, c.Config(), newBundle(ca))()
	eventually(t, ready(service))
	url, err := registration.New("places", append(s.options(), registration.URL("https://127.0.0.1:9443"))...)
	check(t, err)
	defer reconcile(t, url, c.Config(), newBundle(ca))()
	eventually(t, func() error {
		for _, u := range c.all(t, s, "places") {
			for name, config := range clientConfigs(u) {
				if config["url"] == nil {
					return fmt.Errorf("%s %q: %v", u.GetKind(), name, config)
				}
			}
		}
		return nil
	})
	for _, hooks := range []*registration.Webhooks{service, url} {
		eventually(t, ready(hooks))
	}
	before := c.versions(t, s, "places")
	time.Sleep(500 * time.Millisecond)
	if diff := cmp.Diff(before, c.versions(t, s, "places")); diff != "" {
		t.Errorf("the resource versions go on (-before +after):\n%s", diff)
	}
	check(t, applied("places", c.get(t, mutating, "places")))
}

func newestWins(t *testing.T, c cluster) {
	s := newShop(t, "rolling.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	b := newBundle(ca)
	timeout := func() any {
		hooks, _, _ := unstructured.NestedSlice(c.get(t, mutating, "rolling").Object, "webhooks")
		return hooks[0].(map[string]any)["timeoutSeconds"]
	}
	release := func(timeout time.Duration) *registration.Webhooks {
		return declare(t, "rolling", s.definitions(), s.conversion(), s.mutating(registration.Timeout(timeout)), s.validating())
	}
	holds := func(want int64, replicas ...*registration.Webhooks) {
		t.Helper()
		for _, hooks := range replicas {
			eventually(t, ready(hooks)) // the older ones too
			eventually(t, func() error { return hooks.Carry(b.pem) })
		}
		before := c.versions(t, s, "rolling")
		time.Sleep(300 * time.Millisecond)
		if diff := cmp.Diff(before, c.versions(t, s, "rolling")); diff != "" {
			t.Errorf("the resource versions go on (-before +after):\n%s", diff)
		}
		if got := timeout(); got != want {
			t.Errorf("the timeout is %v, want %d", got, want)
		}
	}
	first, second := release(time.Second), release(time.Second)
	defer reconcile(t, first, c.Config(), b)()
	defer reconcile(t, second, c.Config(), b)()
	holds(1, first, second)

	next := release(2 * time.Second)
	stopNext := reconcile(t, next, c.Config(), b)
	eventually(t, func() error {
		if got := timeout(); got != int64(2) {
			return fmt.Errorf("the timeout is %v", got)
		}
		return nil
	})
	holds(2, first, second, next)

	// Whoever sees it first repairs it: the newest, and if it has stopped, an older one.
	damage := `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`
	for _, stop := range []func(){func() {}, stopNext} {
		stop()
		c.patch(t, mutating, "rolling", damage)
		eventually(t, func() error { return carry(t, ca, c.get(t, mutating, "rolling")) })
		holds(2, first, second)
	}
	other, _, _ := newCA(t, "other")
	b.set(other)
	holds(2, first, second)
	check(t, applied("rolling", c.get(t, mutating, "rolling")))

	// A rollback: the old release starts again.
	again := release(time.Second)
	defer reconcile(t, again, c.Config(), b)()
	holds(1, first, second, again)
}

func goneIsTakenAway(t *testing.T, c cluster) {
	s := newShop(t, "gone.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	old := declare(t, "gone", s.definitions(), s.conversion(), s.mutating(), s.validating())
	defer reconcile(t, old, c.Config(), newBundle(ca))()
	eventually(t, ready(old))
	// Something that the same operator has written in the days before it applied.
	_, err := c.Resource(validating).Patch(t.Context(), "gone", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":7}]`), metav1.PatchOptions{FieldManager: "gone"})
	check(t, err)
	eventually(t, func() error { return applied("gone", c.get(t, validating, "gone")) })
	next := declare(t, "gone", s.definitions(), s.conversion(), s.mutating())
	user := c.user(t, "gone", next.PolicyRules())
	defer reconcile(t, next, user, newBundle(ca))()
	eventually(t, ready(next))
	eventually(t, ready(old))
	time.Sleep(100 * time.Millisecond)
	if configs := clientConfigs(c.get(t, validating, "gone")); len(configs) > 0 {
		t.Errorf("there are still %v", configs)
	}
	check(t, next.Carry(ca))
}

// awayAndBack puts a proxy before the API server that goes away and comes back.
func awayAndBack(t *testing.T, c cluster) {
	s := newShop(t, "away.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	target := strings.TrimPrefix(c.Config().Host, "https://")
	away := proxy(t, listener, target)
	config := c.Config()
	config.Host = "https://" + listener.Addr().String()
	hooks := declare(t, "away", s.options()...)
	defer reconcile(t, hooks, config, newBundle(ca))()
	eventually(t, ready(hooks))
	away()
	c.patch(t, mutating, "away", `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`)
	time.Sleep(time.Second)
	if err := hooks.Check(nil); err != nil {
		t.Errorf("as long as nobody knows better, the check says %v", err)
	}
	listener, err = net.Listen("tcp", listener.Addr().String())
	check(t, err)
	defer proxy(t, listener, target)()
	took := eventually(t, func() error { return carry(t, ca, c.get(t, mutating, "away")) })
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
	c.define(t, s)
	ours, _, _ := newCA(t, "ours")
	theirs, _, _ := newCA(t, "theirs")
	hooks, others := declare(t, "fight", s.options()...), declare(t, "fight", s.options()...)
	defer reconcile(t, hooks, c.Config(), newBundle(ours))()
	eventually(t, ready(hooks))
	before := c.get(t, mutating, "fight").GetGeneration()
	defer reconcile(t, others, c.Config(), newBundle(theirs))()
	eventually(t, func() error {
		if err := hooks.Check(nil); err == nil || !strings.Contains(err.Error(), `.clientConfig.caBundle is changed again and again, last by field manager "fight"`) {
			return fmt.Errorf("the check says %w", err)
		}
		return nil
	})
	if n := c.get(t, mutating, "fight").GetGeneration() - before; n > 12 {
		t.Errorf("it was written %d times", n)
	}
}

// user returns the configuration of a new user with these rules and no others.
func (c cluster) user(t testing.TB, name string, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	check(t, err)
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	check(t, err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: name},
	}, metav1.CreateOptions{})
	check(t, err)
	config, err := c.User(name)
	check(t, err)
	return config
}

func rulesSuffice(t *testing.T, c cluster) {
	s := newShop(t, "rbac.example.com")
	c.define(t, s)
	ca, _, _ := newCA(t, "localhost")
	hooks := declare(t, "rbac", s.options()...)
	rules := hooks.PolicyRules()
	for i, rule := range rules {
		for _, verb := range rule.Verbs {
			t.Run(fmt.Sprint("without ", verb, " ", rule.Resources), func(t *testing.T) {
				less := slices.Clone(rules)
				less[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == verb })
				hooks := declare(t, "rbac", s.options()...)
				defer reconcile(t, hooks, c.user(t, fmt.Sprintf("without-%s-%d", verb, i), less), newBundle(ca))()
				want := []string{"forbidden", "cannot " + verb + " resource \"" + rule.Resources[0]}
				eventually(t, func() error {
					err := hooks.Check(nil)
					if err == nil {
						t.Fatal("it is ready")
					}
					for _, w := range want {
						if !strings.Contains(err.Error(), w) {
							return fmt.Errorf("no %q in: %w", w, err)
						}
					}
					return nil
				})
			})
			// What the others could write is not to be there for the next.
			for _, resource := range []schema.GroupVersionResource{mutating, validating} {
				if err := c.Resource(resource).Delete(t.Context(), "rbac", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			c.patch(t, definitions, "pizzas.rbac.example.com", `[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
		}
	}
	defer reconcile(t, hooks, c.user(t, "with-all", rules), newBundle(ca))()
	eventually(t, ready(hooks))
	check(t, hooks.Carry(ca))
	c.patch(t, validating, "rbac", `[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Z2FyYmFnZQ=="}]`)
	eventually(t, func() error { return carry(t, ca, c.get(t, validating, "rbac")) })
}

// requestsReachTheHandlers has the API server resolve a Service. One of type ExternalName is
// resolved without endpoints: ResolveCluster in apiserver/pkg/util/proxy.
func requestsReachTheHandlers(t *testing.T, c cluster) {
	s := newShop(t, "service.example.com")
	c.define(t, s)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	hooks, err := registration.New("service", append(s.options(),
		registration.Service("pizza-system", "pizza-operator"),
		registration.ServicePort(int32(listener.Addr().(*net.TCPAddr).Port)))...)
	check(t, err)
	ca, chain, key := newCA(t, hooks.Hosts()[0])
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	check(t, os.WriteFile(certFile, chain, 0o600))
	check(t, os.WriteFile(keyFile, key, 0o600))
	certs, err := webhook.Files(certFile, keyFile)
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- webhook.Serve(ctx, listener, hooks, certs) }()
	defer func() {
		cancel()
		check(t, <-served)
	}()

	client, err := kubernetes.NewForConfig(c.Config())
	check(t, err)
	for _, namespace := range []string{"pizza-system", "pizzeria"} {
		_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		check(t, err)
	}
	_, err = client.CoreV1().Services("pizza-system").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "pizza-operator"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	check(t, err)
	defer reconcile(t, hooks, c.Config(), newBundle(ca))()
	eventually(t, ready(hooks))

	old := schema.GroupVersionResource{Group: s.group, Version: "v1alpha1", Resource: "pizzas"}
	create := func(namespace, topping string) (*unstructured.Unstructured, error) {
		u := s.pizza(fmt.Sprint("p", time.Now().UnixNano()), topping)
		return c.Resource(old).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{})
	}
	// The API server takes a moment until it looks at new webhooks.
	eventually(t, func() error {
		if _, err := create("pizzeria", "pineapple"); !apierrors.IsInvalid(err) {
			t.Log(time.Now(), err)
			return fmt.Errorf("pineapple: %w", err)
		}
		return nil
	})
	var created *unstructured.Unstructured
	eventually(t, func() (err error) {
		created, err = create("pizzeria", "salami")
		if seen, _, _ := unstructured.NestedInt64(created.Object, "spec", "seen"); err == nil && seen != 1 {
			err = fmt.Errorf("the mutating webhook was called %d times", seen)
		}
		return err
	})
	converted, err := c.Resource(s.resource()).Namespace("pizzeria").Get(t.Context(), created.GetName(), metav1.GetOptions{})
	check(t, err)
	if diff := cmp.Diff(map[string]any{"toppings": "salami", "seen": int64(1)}, converted.Object["spec"]); diff != "" {
		t.Errorf("the pizza in v1 (-want +got):\n%s", diff)
	}
	// In the operator's own namespace they are not called.
	own, err := create("pizza-system", "pineapple")
	check(t, err)
	if diff := cmp.Diff(map[string]any{"topping": "pineapple"}, own.Object["spec"]); diff != "" {
		t.Errorf("the operator's own pizza (-want +got):\n%s", diff)
	}
}

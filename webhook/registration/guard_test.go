package registration_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	policyvalidating "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/rbac"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook/registration"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// guarded is a guarded shop on an API server. The rights of its operator are so wide that only the guard denies
// a request.
type guarded struct {
	*shop
	admin, operator dynamic.Interface
	inGroup         dynamic.Interface // the operator, in a group that may do everything
	name, namespace string
	plural          string // of the definition
}

// declare declares two webhooks of each kind, and a second definition without a conversion.
func (g *guarded) declare(t testing.TB) *registration.Webhooks {
	t.Helper()
	sauces := fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: sauces.%[1]s}, spec: {
  group: %[1]s, scope: Namespaced, names: {kind: Sauce, plural: sauces},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`, g.group)
	opts := append(g.options(), registration.CRDs(sauces),
		registration.OwnNamespace(g.namespace), registration.Guard("cook", g.name+"-webhook"),
		registration.Mutating("second.pizzas."+g.group, "/second/admit", admit(g.mutate())),
		registration.Validating("second.pizzas."+g.group, "/second/validate", admit(g.validate())))
	return declare(t, g.name, opts...)
}

// newGuarded installs the shop on an API server, and waits until its guard denies requests.
func newGuarded(t *testing.T, config *rest.Config, s *shop, as func(user string, groups ...string) *rest.Config) *guarded {
	t.Helper()
	g := &guarded{shop: s, name: "guarded", namespace: "guarded-system", plural: "pizzas"}
	rbac.Grant(t, config, "", "system:serviceaccount:"+g.namespace+":cook",
		rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"", "admissionregistration.k8s.io", "apiextensions.k8s.io"}, Resources: []string{"*"}})
	var err error
	g.admin, err = dynamic.NewForConfig(config)
	expect.NoError(t, err)
	g.operator, err = dynamic.NewForConfig(as("system:serviceaccount:"+g.namespace+":cook", "system:serviceaccounts"))
	expect.NoError(t, err)
	g.inGroup, err = dynamic.NewForConfig(as("system:serviceaccount:"+g.namespace+":cook", "system:masters"))
	expect.NoError(t, err)
	for _, namespace := range []string{g.namespace, "other-" + g.namespace} {
		_, err = g.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), object("v1", "Namespace", namespace), metav1.CreateOptions{})
		expect.NoError(t, err)
	}
	return g
}

// install applies the manifests, and creates the Secret.
func (g *guarded) install(t *testing.T, hooks *registration.Webhooks) {
	t.Helper()
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	for _, u := range testobj.ParseAll(t, text) {
		applied, err := g.admin.Resource(resourceOf(u)).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "deployer"})
		expect.NoError(t, err)
		if strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy") {
			if diff := cmp.Diff(u.Object["spec"], applied.Object["spec"]); diff != "" {
				t.Errorf("a replica sees a difference in the %s (-declared +found):\n%s", u.GetKind(), diff)
			}
		}
	}
	_, err = g.secrets(g.admin).Create(t.Context(), g.secret(), metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.Eventually(t, func() error {
		_, err := g.operator.Resource(mutating).Patch(t.Context(), g.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
		if err == nil {
			return fmt.Errorf("not guarded yet")
		}
		return nil
	})
}

func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	return plural
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
}

func (g *guarded) secrets(c dynamic.Interface) dynamic.ResourceInterface {
	return c.Resource(secrets).Namespace(g.namespace)
}

// secret is as package authority creates it.
func (g *guarded) secret(changes ...string) *unstructured.Unstructured {
	u := object("v1", "Secret", g.name+"-webhook")
	u.Object["type"] = "kubernetes.io/tls"
	u.Object["data"] = map[string]any{"ca.crt": "YQ==", "tls.crt": "YQ==", "tls.key": "YQ==", "next.crt": "YQ==", "next.key": "YQ=="}
	for i := 0; i < len(changes); i += 2 {
		var value any
		if err := json.Unmarshal([]byte(changes[i+1]), &value); err != nil {
			panic(err)
		}
		if err := unstructured.SetNestedField(u.Object, value, strings.Split(changes[i], "/")...); err != nil {
			panic(err)
		}
	}
	return u
}

// attempt is a request of the operator.
type attempt func(ctx context.Context, c dynamic.Interface) error

func (g *guarded) resource(c dynamic.Interface, r schema.GroupVersionResource) (dynamic.ResourceInterface, string) {
	switch r {
	case definitions:
		return c.Resource(r), g.plural + "." + g.group
	case secrets:
		return g.secrets(c), g.name + "-webhook"
	}
	return c.Resource(r), g.name
}

func (g *guarded) patch(r schema.GroupVersionResource, patchType types.PatchType, patch string, subresources ...string) attempt {
	return func(ctx context.Context, c dynamic.Interface) error {
		client, name := g.resource(c, r)
		opts := metav1.PatchOptions{FieldManager: "somebody"}
		if patchType == types.ApplyPatchType {
			opts.Force = new(true)
		}
		_, err := client.Patch(ctx, name, patchType, []byte(patch), opts, subresources...)
		return err
	}
}

func (g *guarded) json(r schema.GroupVersionResource, op, path, value string) attempt {
	return g.patch(r, types.JSONPatchType, fmt.Sprintf(`[{"op":%q,"path":%q,"value":%s}]`, op, path, value))
}

// put replaces the object after a change.
func (g *guarded) put(r schema.GroupVersionResource, change func(u *unstructured.Unstructured) error, subresources ...string) attempt {
	return func(ctx context.Context, c dynamic.Interface) error {
		client, name := g.resource(c, r)
		u, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := change(u); err != nil {
			return err
		}
		_, err = client.Update(ctx, u, metav1.UpdateOptions{FieldManager: "somebody"}, subresources...)
		return err
	}
}

func (g *guarded) create(r schema.GroupVersionResource, u *unstructured.Unstructured) attempt {
	return func(ctx context.Context, c dynamic.Interface) error {
		client, _ := g.resource(c, r)
		_, err := client.Create(ctx, u, metav1.CreateOptions{})
		return err
	}
}

func (g *guarded) delete(r schema.GroupVersionResource) attempt {
	return func(ctx context.Context, c dynamic.Interface) error {
		client, name := g.resource(c, r)
		return client.Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (g *guarded) deleteCollection(r schema.GroupVersionResource) attempt {
	return func(ctx context.Context, c dynamic.Interface) error {
		client, name := g.resource(c, r)
		return client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	}
}

const (
	evilWebhook = `{"name":"evil.example.com","clientConfig":{"url":"https://evil.example.com"},"sideEffects":"None","admissionReviewVersions":["v1"],` +
		`"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]}`
	everything = `[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]`
	owner      = `[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"c7a3c0de-0000-0000-0000-000000000000"}]`
)

// denied returns requests with which the operator could take over more than its own objects, or break them.
func (g *guarded) denied() map[string]attempt {
	all := map[string]attempt{}
	for kind, r := range map[string]schema.GroupVersionResource{"mutating": mutating, "validating": validating} {
		hook := func(field, value string) attempt { return g.json(r, "add", "/webhooks/0/"+field, value) }
		for name, path := range map[string]attempt{
			"a webhook more":           g.json(r, "add", "/webhooks/-", evilWebhook),
			"a webhook more, in front": g.json(r, "add", "/webhooks/0", evilWebhook),
			"a webhook less":           g.json(r, "remove", "/webhooks/0", `""`),
			"no webhooks":              g.patch(r, types.MergePatchType, `{"webhooks":null}`),
			"another order": g.put(r, func(u *unstructured.Unstructured) error {
				hooks := u.Object["webhooks"].([]any)
				hooks[0], hooks[1] = hooks[1], hooks[0]
				return nil
			}),
			"another name":        hook("name", `"evil.example.com"`),
			"rules":               hook("rules", everything),
			"namespaceSelector":   hook("namespaceSelector", `{}`),
			"objectSelector":      hook("objectSelector", `{"matchLabels":{"a":"b"}}`),
			"matchConditions":     hook("matchConditions", `[{"name":"never","expression":"false"}]`),
			"failurePolicy":       hook("failurePolicy", `"Ignore"`),
			"matchPolicy":         hook("matchPolicy", `"Exact"`),
			"sideEffects":         hook("sideEffects", `"NoneOnDryRun"`),
			"timeoutSeconds":      hook("timeoutSeconds", `1`),
			"review versions":     hook("admissionReviewVersions", `["v1"]`),
			"service name":        hook("clientConfig/service/name", `"evil"`),
			"service namespace":   hook("clientConfig/service/namespace", `"evil"`),
			"service path":        hook("clientConfig/service/path", `"/evil"`),
			"service port":        hook("clientConfig/service/port", `1`),
			"url":                 hook("clientConfig", `{"url":"https://evil.example.com"}`),
			"label":               g.json(r, "add", "/metadata/labels", `{"a":"b"}`),
			"annotation":          g.json(r, "add", "/metadata/annotations", `{"a":"b"}`),
			"owner":               g.json(r, "add", "/metadata/ownerReferences", owner),
			"finalizer":           g.json(r, "add", "/metadata/finalizers", `["example.com/stay"]`),
			"strategic patch":     g.patch(r, types.StrategicMergePatchType, `{"webhooks":[`+evilWebhook+`]}`),
			"server-side apply":   g.apply(r, `"webhooks":[`+evilWebhook+`]`),
			"delete":              g.delete(r),
			"delete collection":   g.deleteCollection(r),
			"create another":      g.createConfiguration(r, map[string]any{"name": "evil"}),
			"create, named later": g.createConfiguration(r, map[string]any{"generateName": g.name}),
		} {
			all[kind+": "+name] = path
		}
	}
	for _, r := range []schema.GroupVersionResource{mutating, validating, definitions, secrets} {
		all[r.Resource+": nested managedFields"] = g.put(r, func(u *unstructured.Unstructured) error {
			raw := strings.Repeat(`{"f:a":`, 7) + "{}" + strings.Repeat("}", 7)
			u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{
				Manager: "evil", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: r.GroupVersion().String(),
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw),
			}))
			return nil
		})
	}
	all["mutating: reinvocationPolicy"] = g.json(mutating, "add", "/webhooks/0/reinvocationPolicy", `"IfNeeded"`)

	conversion := func(path, value string) attempt {
		return g.json(definitions, "replace", "/spec/conversion"+path, value)
	}
	status := func(u *unstructured.Unstructured) error {
		return unstructured.SetNestedStringSlice(u.Object, []string{"v1alpha1", "v1"}, "status", "storedVersions")
	}
	for name, path := range map[string]attempt{
		"no conversion":     conversion("", `{"strategy":"None"}`),
		"service":           conversion("/webhook/clientConfig/service/namespace", `"evil"`),
		"path":              conversion("/webhook/clientConfig/service/path", `"/evil"`),
		"url":               conversion("/webhook/clientConfig", `{"url":"https://evil.example.com"}`),
		"review versions":   conversion("/webhook/conversionReviewVersions", `["v1"]`),
		"schema":            g.json(definitions, "add", "/spec/versions/0/schema/openAPIV3Schema/maxProperties", "1"),
		"served":            g.json(definitions, "replace", "/spec/versions/0/served", "false"),
		"short name":        g.json(definitions, "add", "/spec/names/shortNames", `["secrets"]`),
		"label":             g.json(definitions, "add", "/metadata/labels/a", `"b"`),
		"annotation":        g.json(definitions, "add", "/metadata/annotations", `{"a":"b"}`),
		"owner":             g.json(definitions, "add", "/metadata/ownerReferences", owner),
		"finalizer":         g.json(definitions, "add", "/metadata/finalizers", `["example.com/stay"]`),
		"server-side apply": g.apply(definitions, `"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"evil","name":"evil"}},"conversionReviewVersions":["v1"]}}}`),
		"status":            g.put(definitions, status, "status"),
		"status, patched":   g.patch(definitions, types.MergePatchType, `{"status":{"storedVersions":["v1alpha1","v1"]}}`, "status"),
		"delete":            g.delete(definitions),
		"delete collection": g.deleteCollection(definitions),
	} {
		all["definition: "+name] = path
	}

	token := []string{"type", `"kubernetes.io/service-account-token"`, "metadata/annotations", `{"kubernetes.io/service-account.name":"admin"}`, "data", "{}"}
	for name, path := range map[string]attempt{
		"key":                         g.json(secrets, "add", "/data/config", `"YQ=="`),
		"string":                      g.patch(secrets, types.MergePatchType, `{"stringData":{"config":"a"}}`),
		"label":                       g.json(secrets, "add", "/metadata/labels", `{"a":"b"}`),
		"annotation":                  g.json(secrets, "add", "/metadata/annotations", `{"a":"b"}`),
		"owner":                       g.json(secrets, "add", "/metadata/ownerReferences", owner),
		"finalizer":                   g.json(secrets, "add", "/metadata/finalizers", `["example.com/stay"]`),
		"immutable":                   g.json(secrets, "add", "/immutable", "true"),
		"delete":                      g.delete(secrets),
		"delete collection":           g.deleteCollection(secrets),
		"create a token":              g.create(secrets, g.secret(append(token, "metadata/name", `"token"`)...)),
		"create a token, named later": g.create(secrets, g.secret(append(token, "metadata", `{"generateName":"`+g.name+`-webhook","annotations":{"kubernetes.io/service-account.name":"admin"}}`)...)),
		"create a bootstrap token":    g.create(secrets, g.secret("metadata/name", `"bootstrap-token-abcdef"`, "type", `"bootstrap.kubernetes.io/token"`)),
		"create another":              g.create(secrets, g.secret("metadata/name", `"another"`, "type", `"Opaque"`)),
		"create a Helm release":       g.create(secrets, g.secret("metadata", `{"name":"sh.helm.release.v1.a.v9","labels":{"owner":"helm"}}`, "type", `"Opaque"`)),
		"create another TLS Secret":   g.create(secrets, g.secret("metadata/name", `"another"`)),
		"create a typed Helm release": g.create(secrets, g.secret("metadata/name", `"sh.helm.release.v1.a.v1"`, "type", `"helm.sh/release.v1"`)),
		"apply a token":               g.applyNew("token", `"annotations":{"kubernetes.io/service-account.name":"admin"}},"type":"kubernetes.io/service-account-token"`),
	} {
		all["secret: "+name] = path
	}
	return all
}

// recreated returns requests that create the own objects after an administrator has deleted them.
func (g *guarded) recreated(hooks *registration.Webhooks, t *testing.T) map[string]attempt {
	all := map[string]attempt{}
	text, err := hooks.Manifests(nil)
	expect.NoError(t, err)
	for _, u := range testobj.ParseAll(t, text) {
		if !strings.HasPrefix(u.GetKind(), "ValidatingAdmissionPolicy") && u.GetName() != "sauces."+g.group {
			all[u.GetKind()] = g.create(resourceOf(u), u)
		}
	}
	for name, changes := range map[string][]string{
		"type":       {"type", `"kubernetes.io/service-account-token"`, "metadata/annotations", `{"kubernetes.io/service-account.name":"admin"}`},
		"opaque":     {"type", `"Opaque"`},
		"key":        {"data/config", `"YQ=="`},
		"annotation": {"metadata/annotations", `{"reflector.v1.k8s.emberstack.com/reflects":"kube-system/secret"}`},
		"label":      {"metadata/labels", `{"a":"b"}`},
		"owner":      {"metadata/ownerReferences", owner},
		"finalizer":  {"metadata/finalizers", `["example.com/stay"]`},
		"immutable":  {"immutable", "true"},
	} {
		all["Secret with another "+name] = g.create(secrets, g.secret(changes...))
	}
	return all
}

func (g *guarded) createConfiguration(r schema.GroupVersionResource, metadata map[string]any) attempt {
	kind := map[schema.GroupVersionResource]string{mutating: "MutatingWebhookConfiguration", validating: "ValidatingWebhookConfiguration"}[r]
	return g.create(r, &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.GroupVersion().String(), "kind": kind, "metadata": metadata}})
}

func (g *guarded) apply(r schema.GroupVersionResource, fields string) attempt {
	_, name := g.resource(g.admin, r)
	kind := map[schema.GroupVersionResource]string{
		mutating: "MutatingWebhookConfiguration", validating: "ValidatingWebhookConfiguration", definitions: "CustomResourceDefinition", secrets: "Secret",
	}[r]
	return g.patch(r, types.ApplyPatchType, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, r.GroupVersion(), kind, name, fields))
}

func (g *guarded) applyNew(name, fields string) attempt {
	return func(ctx context.Context, c dynamic.Interface) error {
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,%s}`, name, fields)
		_, err := g.secrets(c).Patch(ctx, name, types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "somebody"})
		return err
	}
}

// bundled sets the CA bundle of all webhooks of an object.
func bundled(pem string) func(u *unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		if u.GetKind() == "CustomResourceDefinition" {
			return unstructured.SetNestedField(u.Object, pem, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		}
		for _, hook := range u.Object["webhooks"].([]any) {
			hook.(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = pem
		}
		return nil
	}
}

// allows checks that the guard allows the requests of the packages registration and authority.
func (g *guarded) allows(t *testing.T) {
	t.Helper()
	ca, _, _ := webhooktest.SelfSigned(t, "localhost")
	pem := base64.StdEncoding.EncodeToString(ca)
	type named struct {
		name string
		try  attempt
	}
	all := []named{
		{"secret: next", g.json(secrets, "add", "/data/next.crt", `"Yg=="`)},
		{"secret: previous", g.json(secrets, "add", "/data/previous.crt", `"Yg=="`)},
		{"secret: rotated", g.json(secrets, "remove", "/data/next.key", `""`)},
		{"secret: apply", g.apply(secrets, `"data":{"ca.crt":"Yg=="}`)},
	}
	for _, r := range []schema.GroupVersionResource{mutating, validating, definitions} {
		path := "/webhooks/0/clientConfig/caBundle"
		if r == definitions {
			path = "/spec/conversion/webhook/clientConfig/caBundle"
		}
		all = append(all,
			named{"patch", g.json(r, "add", path, `"`+pem+`"`)},
			named{"no bundle", g.json(r, "remove", path, `""`)},
			named{"update", g.put(r, bundled(pem))},
			named{"nothing", g.put(r, func(*unstructured.Unstructured) error { return nil })},
			named{"managedFields", g.put(r, func(u *unstructured.Unstructured) error {
				u.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
				return nil
			})},
		)
	}
	for _, path := range all {
		if err := path.try(t.Context(), g.operator); err != nil {
			t.Errorf("%s: %v", path.name, err)
		}
	}
}

// allowsOtherObjects checks that the guard does not deny what the operator may do with objects of others.
func (g *guarded) allowsOtherObjects(t *testing.T) {
	t.Helper()
	other := *g
	other.name, other.namespace, other.plural = "other", "other-"+g.namespace, "others"
	definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "others."+g.group)
	expect.NoError(t, unstructured.SetNestedMap(definition.Object, map[string]any{
		"group": g.group, "scope": "Namespaced", "names": map[string]any{"kind": "Other", "plural": "others"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
	}, "spec"))
	expect.NoError(t, other.create(definitions, definition)(t.Context(), g.operator))
	expect.NoError(t, other.createConfiguration(mutating, map[string]any{"name": "other"})(t.Context(), g.admin))
	expect.NoError(t, other.create(secrets, other.secret("type", `"example.com/other"`))(t.Context(), g.operator))
	for _, r := range []schema.GroupVersionResource{definitions, mutating, secrets} {
		expect.NoError(t, other.json(r, "add", "/metadata/labels", `{"a":"b"}`)(t.Context(), g.operator))
		expect.NoError(t, other.delete(r)(t.Context(), g.operator))
	}
}

// holds checks that the guard denies what it should, and nothing else.
func (g *guarded) holds(t *testing.T) {
	hooks := g.declare(t)
	g.install(t, hooks)
	must := func(name string, c dynamic.Interface, path attempt) {
		t.Helper()
		if err := path(t.Context(), c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mustNot := func(name string, path attempt, others ...dynamic.Interface) {
		t.Helper()
		err := path(t.Context(), append(others, g.operator)[0])
		if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "'guarded-guard' denied request: the operator may") {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.allows(t)
	for name, path := range g.denied() {
		mustNot(name, path)
	}
	mustNot("in the group system:masters", g.json(validating, "add", "/metadata/labels", `{"a":"b"}`), g.inGroup)
	g.allowsOtherObjects(t)

	// Objects without webhooks, or without a conversion.
	nothing := func(*unstructured.Unstructured) error { return nil }
	for _, r := range []schema.GroupVersionResource{mutating, validating} {
		must("an administrator removes the webhooks", g.admin, g.patch(r, types.MergePatchType, `{"webhooks":null}`))
		must("an object without webhooks", g.operator, g.put(r, nothing))
		mustNot("a first webhook", g.json(r, "add", "/webhooks", "["+evilWebhook+"]"))
	}
	// Many large webhooks do not exceed the cost limit of an expression.
	var many []any
	for i := range 60 {
		var hook, rule map[string]any
		expect.NoError(t, json.Unmarshal([]byte(evilWebhook), &hook))
		expect.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"operations":["*"],"apiGroups":["%d.%s"],"apiVersions":["*"],"resources":["*/*"]}`, i, g.group), &rule))
		hook["name"], hook["rules"] = fmt.Sprintf("hook%d.%s", i, g.group), slices.Repeat([]any{rule}, 100)
		hook["matchConditions"] = []any{map[string]any{"name": "long", "expression": strings.Repeat("true && ", 100) + "true"}}
		many = append(many, hook)
	}
	must("an administrator adds 60 webhooks", g.admin, g.put(mutating, func(u *unstructured.Unstructured) error {
		u.Object["webhooks"] = many
		return nil
	}))
	must("a bundle in each of 60 webhooks", g.operator, g.put(mutating, bundled("Yg==")))
	mustNot("a webhook beside 60", g.json(mutating, "add", "/webhooks/-", evilWebhook))

	sauces := *g
	sauces.plural = "sauces"
	must("a definition without a conversion", g.operator, sauces.put(definitions, nothing))
	mustNot("a first conversion", sauces.json(definitions, "add", "/spec/conversion",
		`{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://evil.example.com"},"conversionReviewVersions":["v1"]}}`))

	// A finalizer whose list of the objects fails, because their cache is not ready, may wait five minutes for its next attempt.
	expect.Eventually(t, func() error {
		_, err := g.admin.Resource(schema.GroupVersionResource{Group: g.group, Version: "v1", Resource: g.plural}).List(t.Context(), metav1.ListOptions{})
		return err
	})
	for _, r := range []schema.GroupVersionResource{mutating, validating, definitions, secrets} {
		must("an administrator deletes", g.admin, g.delete(r))
	}
	expect.Eventually(t, func() error { // its finalizer takes a moment
		client, name := g.resource(g.admin, definitions)
		_, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("%s is being deleted", name)
		}
		return nil
	})
	for name, path := range g.recreated(hooks, t) {
		mustNot(name, path)
	}
	must("create the Secret again", g.operator, g.create(secrets, g.secret()))
}

func TestGuard_InProcess(t *testing.T) {
	t.Parallel()
	server := apiservertest.Start(t, apiservertest.RBAC())
	newGuarded(t, server.Config(), newShop(t, "guarded.example.com"), func(user string, groups ...string) *rest.Config {
		config := server.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
		return config
	}).holds(t)
}

func TestGuard_RealControlPlane(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	newGuarded(t, c.Config(), newShop(t, "guarded.example.com"), func(user string, groups ...string) *rest.Config {
		config, err := c.User(user, groups...)
		expect.NoError(t, err)
		return config
	}).holds(t)
}

// The controller manager checks the types of a policy, and writes warnings into its status.
func TestGuard_NoTypeWarnings(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g := &guarded{shop: newShop(t, "types.example.com"), name: "types", namespace: "types", plural: "pizzas"}
	text, err := g.declare(t).Manifests(nil)
	expect.NoError(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(c.Config())
	expect.NoError(t, err)
	resources, err := restmapper.GetAPIGroupResources(client)
	expect.NoError(t, err)
	checker := policyvalidating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: client}, RestMapper: restmapper.NewDiscoveryRESTMapper(resources),
	}
	all := testobj.ParseAll(t, text)
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(all[len(all)-2].Object, &policy, true))
	for _, w := range checker.Check(&policy) {
		t.Errorf("%s: %s", w.FieldRef, w.Warning)
	}
}

package apiservertest_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/audit"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/scheme"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
	"github.com/crdkit/crdkit/webhook/registration"
)

const cronTabYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              schedule: {type: string}
              replicas: {type: integer, default: 1, minimum: 0}
              tabs:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, text: {type: string}}
          status:
            type: object
            properties: {runs: {type: integer}}
    subresources: {status: {}}
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              cron: {type: string}
              replicas: {type: integer, default: 1, minimum: 0}
`

const policyYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [stable.example.com], apiVersions: [v1], operations: [CREATE], resources: [crontabs]}]}
  validations: [{expression: object.spec.replicas < 3, message: too many}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec: {policyName: few, validationActions: [Deny]}
`

const mutationYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [stable.example.com], apiVersions: [v1], operations: [CREATE], resources: [crontabs]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: objekt}"}}]
`

const configurationYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: few}
webhooks:
- name: few.example.com
  clientConfig: {service: {name: a, namespace: b}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  admissionReviewVersions: [v1]
  sideEffects: None
`

var resource = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}

// cronTab returns an object in YAML flow style.
func cronTab(t testing.TB, version, name, spec string) *unstructured.Unstructured {
	t.Helper()
	return testobj.Parse(t, "apiVersion: stable.example.com/"+version+"\nkind: CronTab\nmetadata: {name: "+name+"}\nspec: "+spec)
}

func clientOf(s *apiservertest.Server, version string) dynamic.ResourceInterface {
	return dynamic.NewForConfigOrDie(s.Config()).Resource(resource.GroupResource().WithVersion(version)).Namespace("default")
}

// CronTab is a type as operators have it.
type CronTab struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Schedule string `json:"schedule,omitempty"`
		Replicas int    `json:"replicas,omitempty"`
	} `json:"spec,omitempty"`
}

func (c *CronTab) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// CronTabList is a list of them.
type CronTabList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronTab `json:"items"`
}

func (l *CronTabList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for _, c := range l.Items {
		out.Items = append(out.Items, *c.DeepCopyObject().(*CronTab))
	}
	return &out
}

func nightly(_ context.Context, c *CronTab) error {
	if c.Spec.Schedule == "" {
		c.Spec.Schedule = "0 3 * * *"
	}
	return nil
}

func notTooMany(_ context.Context, c *CronTab) (field.ErrorList, error) {
	if c.Spec.Replicas > 3 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), c.Spec.Replicas, "at most 3")}, nil
	}
	return nil, nil
}

// operator returns what an operator of CronTabs registers.
func operator() (*registration.Webhooks, error) {
	v1 := schema.GroupVersion{Group: resource.Group, Version: "v1"}
	s, err := scheme.New(scheme.Version(v1, &CronTab{}, &CronTabList{}))
	if err != nil {
		return nil, err
	}
	reg := conversion.NewRegistry(s)
	beta := schema.GroupVersionKind{Group: v1.Group, Version: "v1beta1", Kind: "CronTab"}
	if err := conversion.AddFields(reg, beta, "v1", conversion.Rename("spec.cron", "spec.schedule")); err != nil {
		return nil, err
	}
	return registration.New("crontabs",
		registration.CRDs([]byte(cronTabYAML)),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Mutating("mutate.crontabs.stable.example.com", "/mutate", admission.NewHandler(s, admission.ConvertWith(reg), admission.Mutate(nightly))),
		registration.Validating("validate.crontabs.stable.example.com", "/validate", admission.NewHandler(s, admission.ConvertWith(reg), admission.Validate(notTooMany))),
		registration.Service("crontab-system", "crontabs"))
}

func TestServer_Webhooks(t *testing.T) {
	t.Parallel()
	hooks, err := operator()
	expect.NoError(t, err)
	s := apiservertest.Start(t, apiservertest.Webhooks(hooks), apiservertest.Stored([]byte(`
apiVersion: stable.example.com/v1beta1
kind: CronTab
metadata: {name: old}
spec: {cron: weekly}`)))
	out, err := clientOf(s, "v1beta1").Create(t.Context(), cronTab(t, "v1beta1", "a", `{}`), metav1.CreateOptions{})
	expect.NoError(t, err)
	if got := testobj.Field(t, out, "spec"); got != `{"cron":"0 3 * * *","replicas":1}` {
		t.Errorf("got %s", got)
	}
	out, err = clientOf(s, "v1").Get(t.Context(), "old", metav1.GetOptions{})
	expect.NoError(t, err)
	if got := testobj.Field(t, out, "spec"); got != `{"replicas":1,"schedule":"weekly"}` {
		t.Errorf("got %s", got)
	}
	_, err = clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "b", `{replicas: 4}`), metav1.CreateOptions{})
	if want := `admission webhook "validate.crontabs.stable.example.com" denied the request: CronTab.stable.example.com "b" is invalid: spec.replicas: Invalid value: 4: at most 3`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// Only errors are logged. The second handler sleeps by a clock of the process, which is not that of
// a bubble.
func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	m.Run()
}

// recorder has the paths of the requests to webhooks.
type recorder struct {
	*registration.Webhooks
	mu    sync.Mutex
	paths []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.paths = append(r.paths, req.URL.Path)
	r.mu.Unlock()
	r.Webhooks.ServeHTTP(w, req)
}

// An update that changes nothing asks the webhooks for admission, and converts nothing.
func TestServer_WebhookRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks, err := operator()
		expect.NoError(t, err)
		r := &recorder{Webhooks: hooks}
		s := apiservertest.Start(t, apiservertest.Webhooks(r))
		requests := func() []string {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			paths := r.paths
			r.paths = nil
			return paths
		}
		beta := cronTab(t, "v1beta1", "a", `{cron: x}`)
		_, err = clientOf(s, "v1beta1").Create(t.Context(), beta, metav1.CreateOptions{})
		expect.NoError(t, err)
		if got := requests(); !slices.Contains(got, "/convert") || !slices.Contains(got, "/mutate") || !slices.Contains(got, "/validate") {
			t.Errorf("the creation called %q", got)
		}
		out, err := clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "b", `{}`), metav1.CreateOptions{})
		expect.NoError(t, err)
		requests()
		_, err = clientOf(s, "v1").Update(t.Context(), out, metav1.UpdateOptions{})
		expect.NoError(t, err)
		if got := requests(); !slices.Equal(got, []string{"/mutate", "/validate"}) {
			t.Errorf("the update called %q", got)
		}
	})
}

func TestServer_WebhookFails(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(configurationYAML)), apiservertest.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "a.b.svc:443" {
			t.Errorf("the host is %s", r.Host)
		}
		http.Error(w, "no", http.StatusTeapot)
	})))
	_, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) {
		t.Errorf("got %v", err)
	}
	expect.ErrorContains(t, err, `failed calling webhook "few.example.com": failed to call webhook: the server responded with the status code 418 but did not return more information`)
}

func TestServer_Informer(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)), apiservertest.Objects(cronTab(t, "v1", "a", "{}")))
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(s.Config()), 0)
	informer := factory.ForResource(resource).Informer()
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if n := len(informer.GetStore().List()); n != 1 {
		t.Fatalf("%d objects", n)
	}
	_, err := clientOf(s, "v1").Create(ctx, cronTab(t, "v1", "b", "{}"), metav1.CreateOptions{})
	expect.NoError(t, err)
	for len(informer.GetStore().List()) != 2 {
		time.Sleep(time.Millisecond)
	}
}

func TestServer_NamespaceDeletion(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
	kube := kubernetes.NewForConfigOrDie(s.Config())
	_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	_, err = kube.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.NoError(t, kube.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}))
	expect.EventuallyTrue(t, "the namespace is gone", func() bool {
		_, err := kube.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	expect.EventuallyTrue(t, "a create fails with NotFound", func() bool { // the admission plugin hears of it a moment later
		_, err = kube.CoreV1().ConfigMaps("team").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			t.Fatalf("got %v, want NotFound", err)
		}
		return apierrors.IsNotFound(err)
	})
}

// A namespace that another request deletes once more, or labels, while it is being emptied is
// there until it is empty, and the next one of its name stays. The requests that empty it are those of no client.
func TestServer_NamespaceTerminating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := map[string]int{}
		var mu sync.Mutex
		s := apiservertest.Start(t, apiservertest.Audit(func(e *audit.Event) {
			mu.Lock()
			defer mu.Unlock()
			requests[e.Verb+" "+e.RequestURI]++
		}))
		fault := s.Inject(apiservertest.Fault{Verb: "deletecollection", Err: apierrors.NewInternalError(errors.New("fault"))})
		core := kubernetes.NewForConfigOrDie(s.Config()).CoreV1()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}
		_, err := core.Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		expect.NoError(t, err)
		_, err = core.ConfigMaps("team").Create(t.Context(), held, metav1.CreateOptions{})
		expect.NoError(t, err)
		for range 2 {
			expect.NoError(t, core.Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}))
			time.Sleep(7 * time.Millisecond)
		}
		_, err = core.Namespaces().Patch(t.Context(), "team", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		expect.NoError(t, err)
		got, err := core.Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		expect.NoError(t, err)
		if got.Status.Phase != corev1.NamespaceTerminating || got.DeletionTimestamp == nil {
			t.Errorf("the namespace is %s, deleted at %v", got.Status.Phase, got.DeletionTimestamp)
		}
		_, err = core.ConfigMaps("team").Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		expect.NoError(t, err)
		for err == nil {
			time.Sleep(time.Millisecond)
			_, err = core.Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		}
		_, err = core.Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		expect.NoError(t, err)
		time.Sleep(time.Second)
		_, err = core.Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
		expect.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		delete(requests, "get /api/v1/namespaces/team")
		want := map[string]int{
			"create /api/v1/namespaces": 2, "delete /api/v1/namespaces/team": 2, "patch /api/v1/namespaces/team": 1,
			"create /api/v1/namespaces/team/configmaps": 1, "patch /api/v1/namespaces/team/configmaps/held": 1,
		}
		if diff := cmp.Diff(want, requests); diff != "" || fault.Failed() > 0 {
			t.Errorf("%d requests met the fault, audited (-want +got):\n%s", fault.Failed(), diff)
		}
	})
}

func TestServer_Policy(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML), []byte(policyYAML)))
	_, err := clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "a", `{replicas: 5}`), metav1.CreateOptions{})
	expect.ErrorContains(t, err, "too many")
}

// Nothing of the server is left when the bubble ends: synctest would say so.
func TestServer_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
		first, err := clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "a", `{}`), metav1.CreateOptions{})
		expect.NoError(t, err)
		time.Sleep(time.Hour)
		second, err := clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "b", `{}`), metav1.CreateOptions{})
		expect.NoError(t, err)
		if d := second.GetCreationTimestamp().Sub(first.GetCreationTimestamp().Time); d != time.Hour {
			t.Errorf("created %v apart, want 1h", d)
		}
	})
}

func TestServer_Kubectl(t *testing.T) {
	t.Parallel()
	kubectl := controlplane.Shared(t).Kubectl()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML)))
	server := httptest.NewServer(s)
	t.Cleanup(server.CloseClientConnections)
	run := func(want string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), kubectl, append([]string{"--server", server.URL}, args...)...)
		command.Stdin = strings.NewReader("apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a, namespace: default}\nspec: {replicas: 2}\n")
		command.Env = []string{"HOME=" + t.TempDir()}
		out, err := command.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("kubectl %s: %v\n%s\nwant %s", args, err, out, want)
		}
	}
	run("crontab.stable.example.com/a created", "apply", "-f", "-")
	run("crontab.stable.example.com/a unchanged", "apply", "-f", "-")
	run("crontab.stable.example.com/a serverside-applied", "apply", "--server-side", "--force-conflicts", "-f", "-")
	run("FIELD: replicas <integer>", "explain", "crontab.spec.replicas")
	run("crontab.stable.example.com/a", "get", "crontabs", "-o", "name")
	run("deployments", "api-resources")
	run("No resources found", "get", "po,svc,deploy")
	run(`crontab.stable.example.com "a" deleted`, "delete", "crontab", "a")
}

func TestNew_NamesTheMistake(t *testing.T) {
	t.Parallel()
	change := func(old, new string) []byte {
		if !strings.Contains(cronTabYAML, old) {
			t.Fatalf("no %s in the definition", old)
		}
		return []byte(strings.Replace(cronTabYAML, old, new, 1))
	}
	for name, test := range map[string]struct {
		opt  apiservertest.Option
		want string
	}{
		"no YAML":            {apiservertest.Manifests([]byte("a: [")), "apiservertest: manifest 0: "},
		"no name":            {apiservertest.Manifests([]byte("apiVersion: v1\nkind: Secret")), `apiservertest: manifest 0: an object needs apiVersion, kind and metadata.name, got "v1", "Secret" and ""`},
		"a definition":       {apiservertest.Manifests(change("openAPIV3Schema", "openAPISchema")), `apiservertest: CustomResourceDefinition crontabs.stable.example.com: strict decoding error: unknown field "spec.versions[0].schema.openAPISchema"`},
		"its schema":         {apiservertest.Manifests(change("{type: integer, default: 1, minimum: 0}", "{type: integer, default: -1, minimum: 0}")), `apiservertest: CustomResourceDefinition crontabs.stable.example.com: CustomResourceDefinition.apiextensions.k8s.io "crontabs.stable.example.com" is invalid: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[replicas].default: Invalid value: -1`},
		"no handler":         {apiservertest.Manifests([]byte(configurationYAML)), "apiservertest: ValidatingWebhookConfiguration few: webhooks[0].clientConfig names a Service, and there is no handler: add Handler or Webhooks"},
		"no side effects":    {apiservertest.Manifests([]byte(strings.Replace(configurationYAML, "  sideEffects: None\n", "", 1))), "webhooks[0].sideEffects: Required value"},
		"a match condition":  {apiservertest.Manifests([]byte(configurationYAML + "  matchConditions: [{name: a, expression: \"objekt == 1\"}]\n")), "webhooks[0].matchConditions[0].expression: Invalid value"},
		"no conversion":      {apiservertest.Manifests(change("  scope: Namespaced\n", "  scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}\n")), "apiservertest: CustomResourceDefinition crontabs.stable.example.com: spec.conversion.webhook.clientConfig names a Service, and there is no handler: add Handler or Webhooks"},
		"a policy":           {apiservertest.Manifests([]byte(strings.Replace(policyYAML, "object.spec", "objekt.spec", 1))), `apiservertest: ValidatingAdmissionPolicy few: ValidatingAdmissionPolicy.admissionregistration.k8s.io "few" is invalid: spec.validations[0].expression: Invalid value: "objekt.spec.replicas < 3": compilation failed: ERROR: <input>:1:1: undeclared reference to 'objekt'`},
		"a mutation":         {apiservertest.Manifests([]byte(mutationYAML)), `apiservertest: MutatingAdmissionPolicy few: MutatingAdmissionPolicy.admissionregistration.k8s.io "few" is invalid: spec.mutations[0].applyConfiguration.expression: Invalid value: "Object{spec: objekt}": compilation failed: ERROR: <input>:1:14: undeclared reference to 'objekt'`},
		"an invalid object":  {apiservertest.Manifests([]byte(cronTabYAML + "---\n{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: a}, spec: {replicas: -1}}\n")), `apiservertest: CronTab a: CronTab.stable.example.com "a" is invalid: spec.replicas: Invalid value: -1`},
		"an unknown kind":    {apiservertest.Objects(cronTab(t, "v1", "a", "{}")), `apiservertest: CronTab a: no matches for kind "CronTab" in version "stable.example.com/v1"`},
		"stored, no kind":    {apiservertest.Stored([]byte(`{"metadata":{"name":"a"}}`)), "apiservertest: stored object 0: "},
		"stored, no version": {apiservertest.Stored([]byte(`{"apiVersion":"stable.example.com/v3","kind":"CronTab","metadata":{"name":"a"}}`)), `apiservertest: stored CronTab a: no definition has it: no matches for kind "CronTab" in version "stable.example.com/v3"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := apiservertest.New(t.Context(), test.opt)
			expect.ErrorContains(t, err, test.want)
		})
	}
}

// A manifest keeps integers that a float64 does not have.
func TestManifests_LargeInteger(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(cronTabYAML+"---\n{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: a}, spec: {replicas: 9007199254740993}}\n")))
	got, err := clientOf(s, "v1").Get(t.Context(), "a", metav1.GetOptions{})
	expect.NoError(t, err)
	if spec := testobj.Field(t, got, "spec"); spec != `{"replicas":9007199254740993}` {
		t.Errorf("got %s", spec)
	}
}

// Nothing of a server that does not start is left when the bubble ends.
func TestNew_FailsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, opt := range []apiservertest.Option{apiservertest.Manifests([]byte(configurationYAML)), apiservertest.Objects(cronTab(t, "v1", "a", "{}"))} {
			if _, err := apiservertest.New(t.Context(), opt); err == nil {
				t.Error("no error")
			}
		}
	})
}

// A context that ends during the start is an error. Upstream would exit the process.
func TestNew_ContextEnds(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Millisecond)
		s, err := apiservertest.New(ctx, apiservertest.Manifests([]byte(cronTabYAML)))
		if i == 0 && !errors.Is(err, context.DeadlineExceeded) || (err == nil) == (s == nil) {
			t.Errorf("after %d ms: got %v", i*20, err)
		}
		cancel()
	}
}

func TestNew_TwoHandlers(t *testing.T) {
	t.Parallel()
	handler := apiservertest.Handler(http.NotFoundHandler())
	_, err := apiservertest.New(t.Context(), handler, handler)
	if want := "apiservertest: Handler: there is another handler; join both with an http.ServeMux"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestServer_BuiltinKinds(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t, apiservertest.Manifests([]byte(`
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: kube-system}
data: {a: Yg==}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {team: x}}
`)))
	kube := kubernetes.NewForConfigOrDie(s.Config())
	secret, err := kube.CoreV1().Secrets("kube-system").Get(t.Context(), "token", metav1.GetOptions{})
	expect.NoError(t, err)
	namespace, err := kube.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	expect.NoError(t, err)
	if secret.UID == "" || namespace.Labels["team"] != "x" || namespace.Labels[corev1.LabelMetadataName] != "default" || namespace.Status.Phase != corev1.NamespaceActive {
		t.Errorf("got %v\nand %v", secret, namespace)
	}

	namespace, err = kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}, metav1.CreateOptions{})
	expect.NoError(t, err)
	if namespace.Labels[corev1.LabelMetadataName] != namespace.Name {
		t.Errorf("namespace %s has the labels %v", namespace.Name, namespace.Labels)
	}

	deployments := kube.AppsV1().Deployments("default")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: appsv1.DeploymentStatus{Replicas: 9}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "x", Image: "x:1"}, {Name: "y", Image: "y:1"}}
	out, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{})
	expect.NoError(t, err)
	if out.Generation != 1 || out.Status.Replicas != 0 {
		t.Errorf("created with generation %d and status %v", out.Generation, out.Status)
	}
	out, err = deployments.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"y","image":"y:2"}]}}}}`), metav1.PatchOptions{})
	expect.NoError(t, err)
	if c := out.Spec.Template.Spec.Containers; out.Generation != 2 || len(c) != 2 || c[0].Name == "y" && c[0].Image != "y:2" {
		t.Errorf("patched to generation %d, %v", out.Generation, c)
	}
	out.Status.Replicas, out.Spec.Paused = 2, true
	out, err = deployments.UpdateStatus(t.Context(), out, metav1.UpdateOptions{})
	expect.NoError(t, err)
	if out.Generation != 2 || out.Status.Replicas != 2 || out.Spec.Paused {
		t.Errorf("after a write of the status: generation %d, status %v, paused %t", out.Generation, out.Status, out.Spec.Paused)
	}
	apply := func(manager, image string) error {
		c := applycorev1.Container().WithName("x").WithImage(image)
		spec := applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().WithContainers(c))
		_, err := deployments.Apply(t.Context(), applyappsv1.Deployment("b", "default").WithSpec(applyappsv1.DeploymentSpec().WithTemplate(spec)), metav1.ApplyOptions{FieldManager: manager})
		return err
	}
	expect.NoError(t, apply("ann", "x:1"))
	if err := apply("bob", "x:2"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `.spec.template.spec.containers[name="x"].image`) {
		t.Errorf("got %v, want a conflict with ann", err)
	}
	_, err = kube.CoordinationV1().Leases("nowhere").Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that the namespace does not exist", err)
	}
}

// A definition that a client creates is in force a moment later, as in a cluster.
func TestServer_LaterDefinition(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	definitions := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err := definitions.Create(t.Context(), testobj.Parse(t, cronTabYAML), metav1.CreateOptions{})
	expect.NoError(t, err)
	expect.EventuallyTrue(t, "crontabs are served", func() bool {
		_, err := clientOf(s, "v1").Create(t.Context(), cronTab(t, "v1", "a", "{}"), metav1.CreateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// A handler whose client is gone must end, or the server does not.
func TestServer_CanceledRequests(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	for i := range 400 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Microsecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://apiservertest/api/v1/namespaces", nil)
		expect.NoError(t, err)
		if response, err := s.Config().Transport.RoundTrip(req); err == nil {
			expect.NoError(t, response.Body.Close())
		}
		cancel()
	}
}

func TestServer_Impersonation(t *testing.T) {
	t.Parallel()
	policy := []byte(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: who}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "false", messageExpression: "request.userInfo.username + ' of ' + request.userInfo.groups[0]"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: who}
spec: {policyName: who, validationActions: [Deny]}
`)
	s := apiservertest.Start(t, apiservertest.Manifests(policy))
	config := s.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"cooks"}}
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	expect.ErrorContains(t, err, "ann of cooks")
}

// An upgrade: the objects of an old version are migrated to the new storage version. Migration
// waits for 70 seconds until each API server knows the definition.
func TestServer_MigrationInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks, err := operator()
		expect.NoError(t, err)
		s := apiservertest.Start(t, apiservertest.Webhooks(hooks), apiservertest.Stored([]byte("{apiVersion: stable.example.com/v1beta1, kind: CronTab, metadata: {name: old}, spec: {cron: weekly}}")))
		_, err = migrate.Run(t.Context(), s.Config(), "crontabs.stable.example.com")
		expect.NoError(t, err)
		stored, err := s.Stored(t.Context(), resource.GroupResource(), "default", "old")
		expect.NoError(t, err)
		if want := `"apiVersion":"stable.example.com/v1"`; !strings.Contains(string(stored), want) || !strings.Contains(string(stored), `"schedule":"weekly"`) {
			t.Errorf("stored is %s", stored)
		}
	})
}

// The server chooses how long a watch without a timeout runs: half an hour at least.
func TestServer_WatchWithoutTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core := kubernetes.NewForConfigOrDie(apiservertest.Start(t).Config()).CoreV1()
		w, err := core.Secrets("").Watch(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		defer w.Stop()
		time.Sleep(29 * time.Minute)
		_, err = core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		expect.NoError(t, err)
		if e, open := <-w.ResultChan(); !open || e.Type != watch.Added {
			t.Errorf("got %v (open: %v), want an added Secret", e, open)
		}
	})
}

// Requests do not wait for a server that has ended.
func TestServer_Ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := apiservertest.New(ctx)
		expect.NoError(t, err)
		cancel()
		synctest.Wait()
		if _, err := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("got %v, want %v", err, http.ErrServerClosed)
		}
	})
}

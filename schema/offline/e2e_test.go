package offline_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/internal/testing/controlplane"
	"github.com/crdkit/crdkit/internal/testing/webhooktest"
	"github.com/crdkit/crdkit/schema/offline"
)

// TestTheAPIServerDoesTheSame sends the same requests to a real API server and to a
// resource offline, with the same webhooks, and compares the verdicts, errors, warnings and
// objects, and the reviews that the webhooks were sent.
func TestTheAPIServerDoesTheSame(t *testing.T) {
	t.Parallel()
	t.Run("a webhook converts", func(t *testing.T) {
		t.Parallel()
		compareWithServer(t, controlplane.Shared(t), suite{group: "example.com", define: gadgetCRD, hooks: gadgetHooks, steps: gadgetSteps(), upgrade: upgradeSteps(), namespace: "default", golden: gadgetsGolden})
	})
	t.Run("what cannot be converted", func(t *testing.T) {
		t.Parallel()
		// Such an object stops the cache. Each list waits three seconds for it before it reads
		// from etcd, and after half a minute lists get no other answer than TooManyRequests
		// (GetList of apiserver/pkg/storage/cacher/delegator.go and cacher.go).
		cp := controlplane.ForTest(t, controlplane.APIServerArgs("--watch-cache=false"))
		cp.SkipIfOlder(t, "the errors say that an object is not decodable")
		compareWithServer(t, cp, suite{group: "example.com", define: gadgetCRD, hooks: gadgetHooks, steps: undecodableSteps(), namespace: "default", golden: undecodableGolden})
	})
	t.Run("nobody converts", func(t *testing.T) {
		t.Parallel()
		compareWithServer(t, controlplane.Shared(t), suite{group: "unconverted.example.org", define: unconverted, hooks: gadgetHooks, steps: gadgetSteps(), upgrade: upgradeSteps(), namespace: "default"})
	})
	t.Run("in no namespace", func(t *testing.T) {
		t.Parallel()
		compareWithServer(t, controlplane.Shared(t), suite{group: "cluster.example.org", define: clusterWide, hooks: clusterHooks, steps: clusterSteps()})
	})
	t.Run("registrations", func(t *testing.T) {
		t.Parallel()
		compareRegistrations(t, controlplane.Shared(t))
	})
}

// compareRegistrations compares what a real API server and New say of bad registrations.
func compareRegistrations(t *testing.T, cp *controlplane.ControlPlane) {
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	mutating, validating := badHooks()
	compare := func(refused error, opt offline.Option) {
		t.Helper()
		var status apierrors.APIStatus
		if !errors.As(refused, &status) || !apierrors.IsInvalid(refused) {
			t.Fatal(refused)
		}
		var want []string
		for _, cause := range status.Status().Details.Causes {
			want = append(want, cause.Field+": "+cause.Message)
		}
		_, err := offline.New(define(t), opt)
		got := faults(err)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got, sameTexts(cp.Minor())); diff != "" {
			t.Errorf("(-server +offline):\n%s", diff)
		}
	}
	meta := metav1.ObjectMeta{Name: "bad"}
	_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: mutating}, metav1.CreateOptions{})
	compare(err, offline.Mutate(gadgetHandler(), mutating...))
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: validating}, metav1.CreateOptions{})
	compare(err, offline.Validate(gadgetHandler(), validating...))
}

// suite is a definition with its webhooks, and what is asked of it.
type suite struct {
	group     string // of the definition, in the place of example.com
	define    func(url string, ca []byte) *apiextensionsv1.CustomResourceDefinition
	hooks     func(url string, ca []byte) ([]admissionregistrationv1.MutatingWebhook, []admissionregistrationv1.ValidatingWebhook)
	steps     []step
	upgrade   []step // after v2 has become the storage version
	namespace string
	golden    string // the file that -update writes, if there is one
}

func compareWithServer(t *testing.T, cp *controlplane.ControlPlane, s suite) {
	asked := &reviews{Handler: gadgetHandler()}
	url, ca := webhooktest.Serve(t, asked)
	crd, mutating, validating := s.objects(url, ca)
	s.steps, s.upgrade = inGroup(s.group, s.steps), inGroup(s.group, s.upgrade)
	real := install(t, cp.Config(), crd, mutating, validating)
	settle(t, real, asked, crd)
	want := play(t, real, asked, s.steps)
	if *update && s.golden != "" {
		var lines []string
		for _, o := range want {
			lines = append(lines, string(encode(t, o)))
		}
		if err := os.WriteFile(s.golden, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, seen := gadgets(t, crd, mutating, validating)
	compare(t, cp.Minor(), want, play(t, offlineServer{r, s.namespace}, seen, s.steps))
	if len(s.upgrade) == 0 {
		return
	}
	t.Run("after an upgrade", func(t *testing.T) {
		stored := storedGadgets(t, r)
		upgrade(t, cp.Config(), real, crd)
		want := play(t, real, asked, s.upgrade)
		r, seen := gadgets(t, crd, mutating, validating, offline.Stored(stored...))
		compare(t, cp.Minor(), want, play(t, offlineServer{r, s.namespace}, seen, s.upgrade))
	})
}

// objects returns the definition and the webhooks, in the group of the suite.
func (s suite) objects(url string, ca []byte) (*apiextensionsv1.CustomResourceDefinition, []admissionregistrationv1.MutatingWebhook, []admissionregistrationv1.ValidatingWebhook) {
	crd := s.define(url, ca)
	crd.Spec.Group = s.group
	crd.Name = crd.Spec.Names.Plural + "." + s.group
	mutating, validating := s.hooks(url, ca)
	for _, w := range mutating {
		w.Rules[0].APIGroups[0] = s.group
	}
	for _, w := range validating {
		w.Rules[0].APIGroups[0] = s.group
	}
	return crd, mutating, validating
}

// storedGadgets returns all objects as they are stored.
func storedGadgets(t *testing.T, r *offline.Resource) (all [][]byte) {
	t.Helper()
	out, err := r.List(t.Context(), "v1", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range decode(t, out.Object)["items"].([]any) {
		out, err := r.Get(t.Context(), "v1", "", item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out.Stored)
	}
	return all
}

// upgrade makes v2 the storage version, and waits until the server has the new definition:
// it warns of v1alpha1 in other words then.
func upgrade(t *testing.T, config *rest.Config, real httpServer, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	const deprecated, warning = "v1alpha1", "v2 is the storage version"
	storeInV2(crd)
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == deprecated {
			v.DeprecationWarning = new(warning)
		}
	}
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	patch := encode(t, map[string]any{"spec": map[string]any{"versions": crd.Spec.Versions}})
	if _, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), crd.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new definition is served", func() bool {
		_, warnings, _ := real.do(t, step{verb: "get", version: deprecated, of: "nobody"}, nil)
		return slices.Contains(warnings, warning)
	})
}

// settle waits until the server serves a definition, and calls its webhooks.
func settle(t *testing.T, real httpServer, asked *reviews, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, v := range crd.Spec.Versions {
		eventually(t, v.Name+" is served", func() bool {
			_, _, failure := real.do(t, step{verb: "list", version: v.Name}, nil)
			return failure == nil
		})
	}
	// A mutating webhook for the labels of the namespace, and a validating one. A create request
	// that comes within two seconds of the definition takes two seconds
	// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, serveResource).
	probe := inGroup(crd.Spec.Group, []step{{verb: "create", version: "v1", dry: true, object: gadget("v1", "probe", "team=me", "")}})[0]
	eventually(t, "the webhooks are called", func() bool {
		real.do(t, probe, []byte(probe.object))
		return asked.have("/label") && asked.have("/judge")
	})
}

// eventually calls f until it returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute, not yet: %s", what)
		}
	}
}

// install installs a definition and its webhooks.
func install(t *testing.T, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition, mutating []admissionregistrationv1.MutatingWebhook, validating []admissionregistrationv1.ValidatingWebhook) httpServer {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range namespaces {
		patch := encode(t, map[string]any{"metadata": map[string]any{"labels": labels}})
		if _, err := client.CoreV1().Namespaces().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{Name: crd.Name}
	if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: mutating}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: validating}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return httpServer{client: httpClient, group: crd.Spec.Group, resource: func(version, namespace string) string {
		url := config.Host + "/apis/" + crd.Spec.Group + "/" + version + "/"
		if namespace == "" && crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			namespace = metav1.NamespaceDefault
		}
		if namespace != "" {
			url += "namespaces/" + namespace + "/"
		}
		return url + crd.Spec.Names.Plural
	}}
}

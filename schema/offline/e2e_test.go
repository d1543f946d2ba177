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

	"github.com/crdkit/crdkit/internal/controlplane"
	"github.com/crdkit/crdkit/internal/webhooktest"
	"github.com/crdkit/crdkit/schema/offline"
)

// TestTheAPIServerDoesTheSame sends the same requests to a real API server and to a
// resource offline, with the same webhooks, and compares the verdicts, errors, warnings and
// objects, and the reviews that the webhooks were sent.
func TestTheAPIServerDoesTheSame(t *testing.T) {
	t.Run("a webhook converts", func(t *testing.T) {
		compareWithServer(t, suite{define: gadgetCRD, hooks: gadgetHooks, steps: gadgetSteps(), upgrade: upgradeSteps(), namespace: "default", update: *update})
	})
	t.Run("nobody converts", func(t *testing.T) {
		compareWithServer(t, suite{define: unconverted, hooks: gadgetHooks, steps: gadgetSteps(), upgrade: upgradeSteps(), namespace: "default"})
	})
	t.Run("in no namespace", func(t *testing.T) {
		compareWithServer(t, suite{define: clusterWide, hooks: clusterHooks, steps: clusterSteps()})
	})
	t.Run("registrations", compareRegistrations)
}

// compareRegistrations compares what a real API server and New say of bad registrations.
func compareRegistrations(t *testing.T) {
	cp := controlplane.ForTest(t)
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
	define    func(url string, ca []byte) *apiextensionsv1.CustomResourceDefinition
	hooks     func(url string, ca []byte) ([]admissionregistrationv1.MutatingWebhook, []admissionregistrationv1.ValidatingWebhook)
	steps     []step
	upgrade   []step // after v2 has become the storage version
	namespace string
	update    bool
}

func compareWithServer(t *testing.T, s suite) {
	b := time.Now()
	cp := controlplane.ForTest(t)
	t.Log("SLOW start", time.Since(b))
	asked := &reviews{Handler: gadgetHandler()}
	url, ca := webhooktest.Serve(t, asked)
	crd := s.define(url, ca)
	mutating, validating := s.hooks(url, ca)
	real := install(t, cp.Config(), crd, mutating, validating)
	t.Log("SLOW installed", time.Since(b))
	want := play(t, real, asked, s.steps)
	t.Log("SLOW played", time.Since(b))
	if s.update {
		var lines []string
		for _, o := range want {
			lines = append(lines, string(encode(t, o)))
		}
		if err := os.WriteFile(golden, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
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
		storeInV2(crd)
		upgrade(t, cp.Config(), crd)
		want := play(t, real, asked, s.upgrade)
		r, seen := gadgets(t, crd, mutating, validating, offline.Stored(stored...))
		compare(t, cp.Minor(), want, play(t, offlineServer{r, s.namespace}, seen, s.upgrade))
	})
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

// upgrade replaces a definition, and waits until the new one is in force.
func upgrade(t *testing.T, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	definitions, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all := definitions.ApiextensionsV1().CustomResourceDefinitions()
	old, err := all.Get(t.Context(), crd.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old.Spec.Versions = crd.Spec.Versions
	if _, err := all.Update(t.Context(), old, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
}

// install installs a definition and its webhooks, and waits until they are in force.
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
	meta := metav1.ObjectMeta{Name: "test"}
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
	real := httpServer{client: httpClient, resource: func(version, namespace string) string {
		url := config.Host + "/apis/" + crd.Spec.Group + "/" + version + "/"
		if namespace == "" && crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			namespace = metav1.NamespaceDefault
		}
		if namespace != "" {
			url += "namespaces/" + namespace + "/"
		}
		return url + crd.Spec.Names.Plural
	}}
	for _, v := range crd.Spec.Versions {
		for {
			response, err := httpClient.Get(real.resource(v.Name, ""))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode == 200 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	// The webhooks are known to the server a moment after they are registered, and a create
	// request that comes within two seconds sleeps.
	time.Sleep(3 * time.Second)
	return real
}

package offline_test

import (
	"os"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/internal/controlplane"
	"github.com/crdkit/crdkit/internal/webhooktest"
)

// TestTheAPIServerDoesTheSame sends the same requests to a real API server and to a
// resource offline, with the same webhooks, and compares the verdicts, errors, warnings and
// objects, and the reviews that the webhooks were sent.
func TestTheAPIServerDoesTheSame(t *testing.T) {
	t.Run("a webhook converts", func(t *testing.T) { compareWithServer(t, gadgetCRD, *update) })
	t.Run("nobody converts", func(t *testing.T) { compareWithServer(t, unconverted, false) })
}

func compareWithServer(t *testing.T, define func(url string, ca []byte) *apiextensionsv1.CustomResourceDefinition, update bool) {
	cp := controlplane.ForTest(t)
	seen := &reviews{Handler: gadgetHandler()}
	url, ca := webhooktest.Serve(t, seen)
	crd := define(url, ca)
	mutating, validating := gadgetHooks(url, ca)
	real := install(t, cp.Config(), crd, mutating, validating)
	want := play(t, real, seen, gadgetSteps())
	if update {
		var lines []string
		for _, o := range want {
			lines = append(lines, string(encode(t, o)))
		}
		if err := os.WriteFile(golden, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, seen := gadgets(t, crd, url, ca)
	compare(t, want, play(t, offlineServer{r}, seen, gadgetSteps()))
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
	real := httpServer{client: httpClient, resource: func(version string) string {
		return config.Host + "/apis/" + crd.Spec.Group + "/" + version + "/namespaces/default/" + crd.Spec.Names.Plural
	}}
	for _, v := range crd.Spec.Versions {
		for {
			response, err := httpClient.Get(real.resource(v.Name))
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

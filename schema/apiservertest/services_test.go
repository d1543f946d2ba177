package apiservertest_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/testobj"
)

// Without a handler, a webhook is found by its Service.
func TestServer_ExternalNameService(t *testing.T) {
	t.Parallel()
	chain, key, err := cert.GenerateSelfSignedCertKey("a.default.svc", nil, nil)
	expect.NoError(t, err)
	pair, err := tls.X509KeyPair(chain, key)
	expect.NoError(t, err)
	webhook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	webhook.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	webhook.StartTLS()
	t.Cleanup(webhook.Close)
	port := int32(webhook.Listener.Addr().(*net.TCPAddr).Port)

	s := apiservertest.Start(t)
	client := kubernetes.NewForConfigOrDie(s.Config())
	configuration := testobj.As[admissionregistrationv1.ValidatingWebhookConfiguration](t, configurationYAML)
	to := &configuration.Webhooks[0].ClientConfig
	to.Service.Namespace, to.Service.Port, to.CABundle = "default", &port, chain
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{})
	expect.NoError(t, err)
	for _, c := range []struct {
		spec corev1.ServiceSpec
		want string
	}{
		{corev1.ServiceSpec{}, `services "a" not found`},
		{corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}, `service default/a: type is "ClusterIP", and there are no Pods: expected ExternalName`},
		{corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}, `the server responded with the status code 418`},
	} {
		var err error
		if c.spec.Type != "" {
			_ = client.CoreV1().Services("default").Delete(t.Context(), "a", metav1.DeleteOptions{}) // there may be none
			_, err = client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: c.spec}, metav1.CreateOptions{})
			expect.NoError(t, err)
		}
		for err == nil { // the plugin learns of the configuration a moment later
			_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a"}}, metav1.CreateOptions{})
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("type %q: got %v, want %s", c.spec.Type, err, c.want)
		}
	}
}

// The first watch of a new CRD need not be repeated a second later.
func TestServer_WatchNewDefinition(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	client, err := rest.HTTPClientFor(s.Config())
	expect.NoError(t, err)
	definitions := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for i := range 10 {
		group := fmt.Sprintf("watch%d.example.com", i)
		u := testobj.Parse(t, strings.ReplaceAll(widgetYAML, "protocol.example.com", group))
		_, err := definitions.Create(t.Context(), u, metav1.CreateOptions{})
		expect.NoError(t, err)
		for status := http.StatusNotFound; status != http.StatusOK; {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Config().Host+"/apis/"+group+"/v1/widgets?watch=true", nil)
			expect.NoError(t, err)
			response, err := client.Do(request)
			expect.NoError(t, err)
			if status = response.StatusCode; status != http.StatusOK && status != http.StatusNotFound {
				text, _ := io.ReadAll(response.Body)
				t.Fatalf("%s: %s", response.Status, text)
			}
			expect.NoError(t, response.Body.Close())
		}
	}
}

// Without a watch cache, lists and watches read from the store.
func TestNoWatchCache_ServesLikeWithCache(t *testing.T) {
	t.Parallel()
	widgets := func(s *apiservertest.Server) (events []string) {
		client := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Group: "watch.example.com", Version: "v1", Resource: "widgets"}).Namespace("default")
		list, err := client.List(t.Context(), metav1.ListOptions{})
		expect.NoError(t, err)
		w, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		expect.NoError(t, err)
		defer w.Stop()
		u := testobj.Parse(t, `{"apiVersion": "watch.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}`)
		u, err = client.Create(t.Context(), u, metav1.CreateOptions{})
		expect.NoError(t, err)
		u.SetLabels(map[string]string{"a": "b"})
		_, err = client.Update(t.Context(), u, metav1.UpdateOptions{})
		expect.NoError(t, err)
		list, err = client.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
		expect.NoError(t, err)
		expect.NoError(t, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		for range 3 {
			e := <-w.ResultChan()
			events = append(events, fmt.Sprint(e.Type, " ", e.Object.(metav1.Object).GetLabels()))
		}
		return append(events, fmt.Sprint("listed ", len(list.Items)))
	}
	manifests := apiservertest.Manifests([]byte(strings.ReplaceAll(widgetYAML, "protocol.example.com", "watch.example.com")))
	want := widgets(apiservertest.Start(t, manifests))
	if diff := cmp.Diff(want, widgets(apiservertest.Start(t, manifests, apiservertest.NoWatchCache()))); diff != "" || len(want) != 4 || want[3] != "listed 1" {
		t.Errorf("%q (-with cache +without):\n%s", want, diff)
	}
}

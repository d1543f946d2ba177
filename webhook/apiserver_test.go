package webhook_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookclient "k8s.io/apiserver/pkg/util/webhook"

	"github.com/crdkit/crdkit/test/expect"
)

type resolver struct{ url *url.URL }

func (r resolver) ResolveEndpoint(string, string, int32) (*url.URL, error) { return r.url, nil }

// The API server offers HTTP/2 only to webhooks that have a URL of the local host
// (k8s.io/apiserver/pkg/util/webhook/client.go).
func TestAPIServer_OfferedProtocols(t *testing.T) {
	t.Parallel()
	offered := make(chan []string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	server.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		offered <- hello.SupportedProtos
		return nil, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	addr, err := url.Parse(server.URL)
	expect.NoError(t, err)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	manager, err := webhookclient.NewClientManager([]schema.GroupVersion{admissionv1.SchemeGroupVersion}, admissionv1.AddToScheme)
	expect.NoError(t, err)
	auth, err := webhookclient.NewDefaultAuthenticationInfoResolver("")
	expect.NoError(t, err)
	manager.SetAuthenticationInfoResolver(auth)
	manager.SetServiceResolver(resolver{addr})
	for name, c := range map[string]struct {
		config webhookclient.ClientConfig
		want   []string
	}{
		"service":    {webhookclient.ClientConfig{Service: &webhookclient.ClientConfigService{Name: "x", Namespace: "y", Port: 443}}, []string{"http/1.1"}},
		"local host": {webhookclient.ClientConfig{URL: server.URL}, []string{"h2", "http/1.1"}},
	} {
		c.config.CABundle = ca
		client, err := manager.HookClient(c.config)
		expect.NoError(t, err)
		_ = client.Post().Body([]byte("{}")).Do(t.Context()) // a handshake suffices
		if diff := cmp.Diff(c.want, <-offered); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

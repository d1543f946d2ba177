package webhook_test

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

func clientsOf(t testing.TB, ca *webhooktest.CA, names ...string) *webhook.Clients {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(file, ca.PEM(), 0o600))
	clients, err := webhook.ClientsOf(file, names...)
	expect.NoError(t, err)
	return clients
}

// named makes a client certificate of what issue is about to issue.
func named(commonName string, dnsNames ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: commonName}
		c.DNSNames = dnsNames
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
}

// with shows a certificate whatever CAs the server asks for, as an attacker would.
func with(cert *tls.Certificate) func(*tls.Config) {
	return func(config *tls.Config) {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
}

// Only the named clients are let through.
func TestOnly_NamedClients(t *testing.T) {
	ca, other := webhooktest.NewCA(t, "of clients"), webhooktest.NewCA(t, "of clients") // of the same name
	clients := clientsOf(t, ca, "kube-apiserver", "apiserver.example")
	mux := http.NewServeMux()
	mux.Handle("/", clients.Only(echo))
	mux.Handle("/healthz", webhook.Checks{})
	s := start(t, mux, webhook.VerifyClients(clients))
	anyone := clientsOf(t, ca)
	open := start(t, anyone.Only(echo), webhook.VerifyClients(anyone))
	const refused = -1 // by the handshake
	client := ca.Issue(t, named("kube-apiserver"))
	byAClient := (&webhooktest.CA{Cert: client.Leaf, Key: client.PrivateKey.(*ecdsa.PrivateKey)}).Issue(t, named("kube-apiserver"))
	byAClient.Certificate = append(byAClient.Certificate, client.Certificate...)
	for name, c := range map[string]struct {
		cert         *tls.Certificate
		code, anyone int
	}{
		"no certificate":    {nil, 401, 401},
		"the common name":   {ca.Issue(t, named("kube-apiserver")), 200, 200},
		"a DNS name":        {ca.Issue(t, named("x", "y", "apiserver.example")), 200, 200},
		"another name":      {ca.Issue(t, named("mallory", "kube-apiserver.example")), 403, 200},
		"no name":           {ca.Issue(t, named("")), 403, 200},
		"another case":      {ca.Issue(t, named("Kube-APIServer")), 403, 200},
		"another CA":        {other.Issue(t, named("kube-apiserver")), refused, refused},
		"self-made":         {&tls.Certificate{Certificate: [][]byte{other.Cert.Raw}, PrivateKey: other.Key}, refused, refused},
		"another one's key": {&tls.Certificate{Certificate: ca.Issue(t, named("kube-apiserver")).Certificate, PrivateKey: other.Key}, refused, refused},
		"for servers": {ca.Issue(t, func(c *x509.Certificate) {
			named("kube-apiserver")(c)
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), refused, refused},
		"expired":             {ca.Issue(t, func(c *x509.Certificate) { named("kube-apiserver")(c); c.NotAfter = time.Now().Add(-time.Minute) }), refused, refused},
		"not valid yet":       {ca.Issue(t, func(c *x509.Certificate) { named("kube-apiserver")(c); c.NotBefore = time.Now().Add(time.Minute) }), refused, refused},
		"signed by a client":  {byAClient, refused, refused},
		"garbage certificate": {&tls.Certificate{Certificate: [][]byte{[]byte("x")}, PrivateKey: other.Key}, refused, refused},
	} {
		protocols(t, func(t *testing.T, http2 bool) {
			var change []func(*tls.Config)
			if c.cert != nil {
				change = append(change, with(c.cert))
			}
			got := []int{}
			for _, s := range []*site{s, open} {
				code, answer, err := post(s.client(t, http2, change...), s.url(), []byte("x"))
				if err != nil {
					code = refused
				}
				if code == 401 || code == 403 {
					var status metav1.Status
					if err := json.Unmarshal([]byte(answer), &status); err != nil || status.Kind != "Status" || int(status.Code) != code || status.Message == "" {
						t.Errorf("%s: the answer is %s", name, answer)
					}
				}
				got = append(got, code)
			}
			if diff := cmp.Diff([]int{c.code, c.anyone}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
	resp, err := s.client(t, false).Get(s.url() + "/healthz")
	expect.NoError(t, err)
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("a probe without a certificate got %s", resp.Status)
	}
}

// A client that a CA has let in is refused when the CA has been removed.
func TestVerifyClients_RemovedCA(t *testing.T) {
	before, after := webhooktest.NewCA(t, "before"), webhooktest.NewCA(t, "after")
	file := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(file, before.PEM(), 0o600))
	clients, err := webhook.ClientsOf(file)
	expect.NoError(t, err)
	s := start(t, clients.Only(echo), webhook.VerifyClients(clients))
	sessions := tls.NewLRUClientSessionCache(10)
	client := func(ca *webhooktest.CA) *http.Client {
		cert := ca.Issue(t, named("kube-apiserver"))
		return s.client(t, false, with(cert), func(c *tls.Config) {
			c.ClientSessionCache = sessions
		})
	}
	kept := client(before)
	if got := mustPost(t, kept, s.url(), "x"); got != "200 x\n" {
		t.Fatalf("got %s", got)
	}
	// Both in the file: either is good.
	expect.NoError(t, os.WriteFile(file, append(before.PEM(), after.PEM()...), 0o600))
	expect.NoError(t, clients.Ready(nil))
	if got := mustPost(t, kept, s.url(), "x") + mustPost(t, client(after), s.url(), "x"); got != "200 x\n200 x\n" {
		t.Errorf("got %s", got)
	}
	// A broken file changes nothing, and is reported.
	for _, broken := range []string{"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		expect.NoError(t, os.WriteFile(file, []byte(broken), 0o600))
		expect.ErrorContains(t, clients.Ready(nil), file)
		if got := mustPost(t, kept, s.url(), "x") + mustPost(t, client(after), s.url(), "x"); got != "200 x\n200 x\n" {
			t.Errorf("with %q, got %s", broken, got)
		}
	}
	expect.NoError(t, os.WriteFile(file, after.PEM(), 0o600))
	expect.NoError(t, clients.Ready(nil))
	if code, _, err := post(kept, s.url(), nil); code != 401 {
		t.Errorf("on the kept connection, the old CA gets %d, %v", code, err)
	}
	if code, _, err := post(client(before), s.url(), nil); err == nil {
		t.Errorf("on a new connection, the old CA gets %d", code)
	}
	if got := mustPost(t, client(after), s.url(), "x"); got != "200 x\n" {
		t.Errorf("the new CA gets %s", got)
	}
}

// Sessions of clients are not resumed.
func TestVerifyClients_NoResumption(t *testing.T) {
	ca := webhooktest.NewCA(t, "of clients")
	clients := clientsOf(t, ca)
	resumed := func(opts ...webhook.Option) bool {
		s := start(t, echo, opts...)
		sessions := tls.NewLRUClientSessionCache(10)
		var last bool
		for range 3 {
			client := s.client(t, false, with(ca.Issue(t, named("x"))), func(c *tls.Config) { c.ClientSessionCache = sessions })
			resp, err := client.Get(s.url())
			expect.NoError(t, err)
			resp.Body.Close()
			last = resp.TLS.DidResume
		}
		return last
	}
	if !resumed() {
		t.Error("without VerifyClients, no session is resumed: this test shows nothing")
	}
	if resumed(webhook.VerifyClients(clients)) {
		t.Error("a session was resumed")
	}
}

// A certificate that expires loses its connection.
func TestVerifyClients_CertificateExpires(t *testing.T) {
	t.Parallel()
	ca := webhooktest.NewCA(t, "of clients")
	clients := clientsOf(t, ca)
	s := start(t, clients.Only(echo), webhook.VerifyClients(clients))
	end := time.Now().Add(2 * time.Second).Truncate(time.Second)
	client := s.client(t, false, with(ca.Issue(t, func(c *x509.Certificate) { named("x")(c); c.NotAfter = end })))
	if got := mustPost(t, client, s.url(), "x"); got != "200 x\n" {
		t.Fatalf("got %s", got)
	}
	time.Sleep(time.Until(end.Add(10 * time.Millisecond)))
	if code, _, err := post(client, s.url(), nil); code != 401 {
		t.Errorf("got %d, %v", code, err)
	}
}

// ClientsOf reports what cannot be used.
func TestClientsOf_UnusableArguments(t *testing.T) {
	if _, err := webhook.ClientsOf("missing.crt"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(file, []byte("no certificate"), 0o600))
	_, err := webhook.ClientsOf(file)
	expect.ErrorContains(t, err, file)
	ca, _, _ := webhooktest.SelfSigned(t, "clients")
	expect.NoError(t, os.WriteFile(file, slices.Concat(ca, ca[:len(ca)-50]), 0o600))
	_, err = webhook.ClientsOf(file)
	expect.ErrorContains(t, err, file, "the last certificate is not complete")
	_, err = webhook.ClientsOf(file, "")
	expect.ErrorContains(t, err, `name ""`)
}

// Only refuses every client without TLS.
func TestOnly_WithoutTLS(t *testing.T) {
	w := httptest.NewRecorder()
	clientsOf(t, webhooktest.NewCA(t, "x")).Only(echo).ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if w.Code != 401 {
		t.Errorf("got %d", w.Code)
	}
}

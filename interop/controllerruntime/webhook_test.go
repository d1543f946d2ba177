package controllerruntime_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	peer "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
)

// TestHandler_OnWebhookServer shows how a handler mounts on a manager's webhook server: the
// handler as it is, and the TLS in five fields.
func TestHandler_OnWebhookServer(t *testing.T) {
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	expect.NoError(t, err)
	_, ca := pem.Decode(chain)
	certFile, keyFile, caFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key"), filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, errors.Join(os.WriteFile(certFile, chain, 0o600), os.WriteFile(keyFile, key, 0o600), os.WriteFile(caFile, ca, 0o600)))
	certs, err := webhook.Files(certFile, keyFile)
	expect.NoError(t, err)
	clients, err := webhook.ClientsOf(caFile)
	expect.NoError(t, err)
	port, err := controlplane.FreePort()
	expect.NoError(t, err)
	server := peer.NewServer(peer.Options{
		Host: "127.0.0.1",
		Port: port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			want := webhook.TLSConfig(certs, webhook.VerifyClients(clients))
			c.MinVersion, c.NextProtos = want.MinVersion, want.NextProtos
			c.GetCertificate, c.ClientAuth = want.GetCertificate, want.ClientAuth
			c.SessionTicketsDisabled, c.VerifyConnection = want.SessionTicketsDisabled, want.VerifyConnection
		}},
	})
	server.Register("/convert", conversion.NewHandler(registry(t)))
	server.Register("/protected", clients.Only(http.NotFoundHandler()))
	done := make(chan error, 1)
	go func() { done <- server.Start(t.Context()) }()
	t.Cleanup(func() { // t.Context has ended by now
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	const review = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"example.com/v2","objects":[
		{"apiVersion":"example.com/v1","kind":"Server","metadata":{"name":"s"},"hostPort":"localhost 80"}]}}`
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: "localhost"},
		ForceAttemptHTTP2: true,
		DisableKeepAlives: true,
	}}
	post := func(path string) (string, *http.Response) {
		var resp *http.Response
		expect.Eventually(t, func() (err error) {
			resp, err = client.Post("https://"+listenerAddr(port)+path, "application/json", strings.NewReader(review))
			return err
		})
		defer resp.Body.Close()
		var body bytes.Buffer
		_, err := io.Copy(&body, resp.Body)
		expect.NoError(t, err)
		return body.String(), resp
	}
	answer, resp := post("/convert")
	if !strings.Contains(answer, `"host":"localhost"`) || resp.TLS.Version != tls.VersionTLS13 || resp.ProtoMajor != 2 {
		t.Errorf("with %s, %s: %s", tls.VersionName(resp.TLS.Version), resp.Proto, answer)
	}
	if _, resp := post("/protected"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a client certificate, the answer is %s", resp.Status)
	}
}

func listenerAddr(port int) string {
	return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}).String()
}

package webhook_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

func TestTLSConfig_ServedByOtherMeans(t *testing.T) {
	ca, clientCA := webhooktest.NewCA(t, "of servers"), webhooktest.NewCA(t, "of clients")
	clients := clientsOf(t, clientCA)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	server := &http.Server{
		Handler:   clients.Only(echo),
		TLSConfig: webhook.TLSConfig(serving(t, ca), webhook.VerifyClients(clients)),
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	defer server.Close()
	s := &site{ca: ca, addr: listener.Addr().String()}
	protocols(t, func(t *testing.T, http2 bool) {
		if got := mustPost(t, s.client(t, http2, with(clientCA.Issue(t, named("kube-apiserver")))), s.url(), "x"); got != "200 x\n" {
			t.Errorf("got %s", got)
		}
	})
	if code, _, err := post(s.client(t, false), s.url(), nil); code != http.StatusUnauthorized {
		t.Errorf("got %d, %v", code, err)
	}
}

// VerifyClients leaves the protocols to the owner, as kubebuilder's disableHTTP2 does, in the
// TLSOpts of controller-runtime.
func TestVerifyClients_Protocols(t *testing.T) {
	ca, clientCA := webhooktest.NewCA(t, "of servers"), webhooktest.NewCA(t, "of clients")
	clients := clientsOf(t, clientCA)
	config := webhook.TLSConfig(serving(t, ca), webhook.VerifyClients(clients))
	config.NextProtos = []string{"http/1.1"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	expect.NoError(t, err)
	server := &http.Server{Handler: clients.Only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	s := &site{ca: ca, addr: listener.Addr().String()}
	if got := mustPost(t, s.client(t, false, with(clientCA.Issue(t, named("x")))), s.url(), "x"); got != "200 HTTP/1.1\n" {
		t.Errorf("got %s", got)
	}
}

package webhook_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/webhook"
)

func TestTLSConfigServesByOtherMeans(t *testing.T) {
	ca, clientCA := newAuthority(t, "of servers"), newAuthority(t, "of clients")
	clients := clientsOf(t, clientCA)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	server := &http.Server{
		Handler:   clients.Only(echo),
		TLSConfig: webhook.TLSConfig(ca.serving(t), webhook.VerifyClients(clients)),
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	defer server.Close()
	s := &site{ca: ca, addr: listener.Addr().String()}
	protocols(t, func(t *testing.T, http2 bool) {
		if got := mustPost(t, s.client(t, http2, with(clientCA.issue(t, named("kube-apiserver")))), s.url(), "x"); got != "200 x\n" {
			t.Errorf("got %s", got)
		}
	})
	if code, _, err := post(s.client(t, false), s.url(), nil); code != http.StatusUnauthorized {
		t.Errorf("got %d, %v", code, err)
	}
}

func TestTLSConfigPanicsWhenItIsGivenNil(t *testing.T) {
	certs := newAuthority(t, "x").serving(t)
	for name, c := range map[string]struct {
		config func()
		want   string
	}{
		"certificates": {func() { webhook.TLSConfig(nil) }, "the certificates are nil"},
		"clients":      {func() { webhook.TLSConfig(certs, webhook.VerifyClients(nil)) }, "VerifyClients was given nil"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("%s: got %s", name, got)
				}
			}()
			c.config()
		}()
	}
}

func TestServeFindsWhatIsNilAndClosesTheListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	err = webhook.Serve(t.Context(), listener, nil, nil, webhook.VerifyClients(nil))
	for _, want := range []string{"the handler is nil", "the certificates are nil", "VerifyClients was given nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener says %v", err)
	}
}

// As kubebuilder's disableHTTP2 does, in the TLSOpts of controller-runtime.
func TestVerifyClientsLeavesTheProtocolsToTheOwner(t *testing.T) {
	ca, clientCA := newAuthority(t, "of servers"), newAuthority(t, "of clients")
	clients := clientsOf(t, clientCA)
	config := webhook.TLSConfig(ca.serving(t), webhook.VerifyClients(clients))
	config.NextProtos = []string{"http/1.1"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	check(t, err)
	server := &http.Server{Handler: clients.Only(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	s := &site{ca: ca, addr: listener.Addr().String()}
	if got := mustPost(t, s.client(t, true, with(clientCA.issue(t, named("x")))), s.url(), "x"); got != "200 HTTP/1.1\n" {
		t.Errorf("got %s", got)
	}
}

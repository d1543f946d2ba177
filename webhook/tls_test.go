package webhook_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/webhook"
)

func TestTLS12IsAllowedWithForwardSecretSuitesAlone(t *testing.T) {
	s := start(t, echo, webhook.AllowTLS12())
	try := func(version uint16, suites ...uint16) (string, error) {
		config := s.config("h2", "http/1.1")
		config.MinVersion, config.MaxVersion, config.CipherSuites = tls.VersionTLS10, version, suites
		conn, err := tls.Dial("tcp", s.addr, config)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		state := conn.ConnectionState()
		return tls.VersionName(state.Version) + " " + state.NegotiatedProtocol, nil
	}
	for _, suite := range tls.CipherSuites() {
		if suite.SupportedVersions[0] == tls.VersionTLS13 {
			continue
		}
		// The server's key is an ECDSA key.
		want := ""
		switch suite.ID {
		case tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
			want = "TLS 1.2 h2"
		}
		got, err := try(tls.VersionTLS12, suite.ID)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%v", suite.Name, diff, err)
		}
	}
	if got, err := try(tls.VersionTLS11); err == nil {
		t.Errorf("the server speaks %s", got)
	}
	if got, err := try(tls.VersionTLS13); err != nil || got != "TLS 1.3 h2" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestTLSConfigServesByOtherMeans(t *testing.T) {
	ca, clientCA := newAuthority(t, "of servers"), newAuthority(t, "of clients")
	clients := clientsOf(t, clientCA)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	server := &http.Server{
		Handler:   clients.Only(echo),
		TLSConfig: webhook.TLSConfig(ca.serving(t), webhook.AllowTLS12(), webhook.VerifyClients(clients)),
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

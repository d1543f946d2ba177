package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
)

// GetCertificate makes it webhook.Certificates.
type fixed tls.Certificate

func (f *fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return (*tls.Certificate)(f), nil
}

// serving returns a certificate of a server on loopback.
func serving(t testing.TB, ca *webhooktest.CA) *fixed {
	return (*fixed)(ca.Issue(t, func(c *x509.Certificate) {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		c.DNSNames = []string{"localhost"}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}))
}

// site is a server on loopback.
type site struct {
	ca   *webhooktest.CA
	addr string
	stop context.CancelFunc
	done chan error
}

// start serves until the test ends, or stop is called.
func start(t testing.TB, h http.Handler, opts ...webhook.Option) *site {
	t.Helper()
	return startIn(t, t.Context(), webhooktest.NewCA(t, "the CA of the server"), h, opts...)
}

func startIn(t testing.TB, ctx context.Context, ca *webhooktest.CA, h http.Handler, opts ...webhook.Option) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	s := &site{ca: ca, addr: listener.Addr().String(), stop: cancel, done: make(chan error, 1)}
	certs := serving(t, ca)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.done <- webhook.Serve(ctx, listener, h, certs, opts...)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return s
}

// client returns a client for HTTP/1.1 or HTTP/2, with connections of its own.
func (s *site) client(t testing.TB, http2 bool, change ...func(*tls.Config)) *http.Client {
	config := s.config()
	for _, c := range change {
		c(config)
	}
	transport := &http.Transport{TLSClientConfig: config, Protocols: &http.Protocols{}, MaxIdleConnsPerHost: 100}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (s *site) config(protos ...string) *tls.Config {
	return &tls.Config{RootCAs: s.ca.Pool(), ServerName: "localhost", NextProtos: protos}
}

// dial opens a connection and shakes hands.
func (s *site) dial(t testing.TB, protos ...string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr, s.config(protos...))
	expect.NoError(t, err)
	t.Cleanup(func() { conn.NetConn().Close() })
	return conn
}

func (s *site) url() string { return "https://" + s.addr }

// post sends a body, and returns the status code and the answer.
func post(client *http.Client, url string, body []byte) (int, string, error) {
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// mustPost is for those who get an answer in any case.
func mustPost(t testing.TB, client *http.Client, url, body string) string {
	t.Helper()
	code, answer, err := post(client, url, []byte(body))
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
	return fmt.Sprintln(code, answer)
}

// echo answers with what it got.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(body)
})

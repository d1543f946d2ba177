package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/crdkit/crdkit/webhook"
)

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = sign(t, template, template, nil)
	a.pool.AddCert(a.cert)
	return a
}

// sign makes a key and a certificate for it; without a signer it signs itself.
func sign(t testing.TB, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	check(t, err)
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	return cert, key
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

var serial = struct {
	sync.Mutex
	n int64
}{n: 1}

// issue issues a certificate that has what change gives it.
func (a *authority) issue(t testing.TB, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	serial.Lock()
	serial.n++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial.n),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	serial.Unlock()
	change(template)
	cert, key := sign(t, template, a.cert, a.key)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// GetCertificate makes it webhook.Certificates.
type fixed tls.Certificate

func (f *fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return (*tls.Certificate)(f), nil
}

func (a *authority) serving(t testing.TB) webhook.Certificates {
	return (*fixed)(a.issue(t, func(c *x509.Certificate) {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		c.DNSNames = []string{"localhost"}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}))
}

// site is a server on loopback.
type site struct {
	ca   *authority
	addr string
	stop context.CancelFunc
	done chan error
}

// start serves until the test ends, or stop is called.
func start(t testing.TB, h http.Handler, opts ...webhook.Option) *site {
	t.Helper()
	return startIn(t, t.Context(), newAuthority(t, "the CA of the server"), h, opts...)
}

func startIn(t testing.TB, ctx context.Context, ca *authority, h http.Handler, opts ...webhook.Option) *site {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(ctx)
	s := &site{ca: ca, addr: listener.Addr().String(), stop: cancel, done: make(chan error, 1)}
	certs := ca.serving(t)
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
	return &tls.Config{RootCAs: s.ca.pool, ServerName: "localhost", NextProtos: protos}
}

// dial opens a connection and shakes hands.
func (s *site) dial(t testing.TB, protos ...string) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr, s.config(protos...))
	check(t, err)
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

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/logcheck"
)

const (
	day = 24 * time.Hour
	// start is after the patience of a replica that finds nothing.
	start = 12 * time.Second
)

// Interval sets how often the Secret is read, so that a test of days takes milliseconds.
func Interval(d time.Duration) Option { return func(a *Authority) { a.interval = d } }

// CertificateLifetime sets the lifetime of serving certificates.
func CertificateLifetime(d time.Duration) Option { return func(a *Authority) { a.leafLifetime = d } }

// running is an authority with default times, for pizza.ns.svc, and the lines that it logs.
type running struct {
	*Authority
	stop  func()
	lines func() []string
}

// logged returns the errors in the log.
func (r *running) logged() (errs []string) {
	for _, line := range r.lines() {
		if !strings.HasPrefix(line, `"level"=0`) {
			errs = append(errs, line)
		}
	}
	return errs
}

// run starts an authority, which the test's end stops.
func run(t *testing.T, c *cluster, opts ...Option) *running {
	t.Helper()
	return runIn(t, c.config(), "ns", opts...)
}

// runIn starts an authority whose Secret is in a namespace of an API server.
func runIn(t *testing.T, config *rest.Config, namespace string, opts ...Option) *running {
	t.Helper()
	a, err := New(config, namespace, "ca", []string{"pizza.ns.svc"}, opts...)
	expect.NoError(t, err)
	r := &running{Authority: a}
	var logged context.Context
	logged, r.lines = logcheck.Record(t.Context())
	ctx, cancel := context.WithCancel(logged)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// started starts an authority, and waits until it serves.
func started(t *testing.T, c *cluster, opts ...Option) *running {
	t.Helper()
	r := run(t, c, opts...)
	time.Sleep(start)
	return r
}

// wantsErrors fails the test if r has logged another number of errors.
func (r *running) wantsErrors(t *testing.T, n int) {
	t.Helper()
	if errs := r.logged(); len(errs) != n {
		t.Errorf("it logs %d errors, want %d: %q", len(errs), n, errs)
	}
}

func pemKey(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// bubble runs a test in a bubble of testing/synctest.
func bubble(t *testing.T, f func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newCluster()) })
}

func makeCA(t testing.TB, now time.Time, lifetime time.Duration) *ca {
	t.Helper()
	c, err := newCA("ca", now, lifetime)
	expect.NoError(t, err)
	return c
}

func encoded(t testing.TB, s *state) map[string][]byte {
	t.Helper()
	return s.encode()
}

// wantsIssuer fails the test if the certificate that r serves is not one of this CA.
func (r *running) wantsIssuer(t *testing.T, issuer *x509.Certificate) {
	t.Helper()
	leaf, err := r.GetCertificate(nil)
	expect.NoError(t, err)
	if err := leaf.Leaf.CheckSignatureFrom(issuer); err != nil {
		t.Fatalf("the certificate is of %s, not of %s", leaf.Leaf.Issuer, issuer.Subject)
	}
}

// wantsWell fails the test if r does not serve what the Secret's bundle trusts.
func (r *running) wantsWell(t *testing.T, c *cluster) {
	t.Helper()
	expect.NoError(t, r.Ready(nil))
	s := c.state(t)
	if bundle := r.CABundle(); !bytes.Equal(bundle, s.bundle()) {
		t.Fatal("the bundle is not the Secret's")
	}
	expect.NoError(t, shake(r.Authority, s.bundle(), tls.VersionTLS13, time.Now()))
}

// shake is a handshake with a client that trusts a bundle.
func shake(a *Authority, bundle []byte, version uint16, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	clock := func() time.Time { return now }
	served := make(chan error, 1)
	go func() {
		served <- tls.Server(there, &tls.Config{GetCertificate: a.GetCertificate, Time: clock}).Handshake()
	}()
	client := tls.Client(here, &tls.Config{RootCAs: roots, ServerName: "pizza.ns.svc", MinVersion: version, MaxVersion: version, Time: clock})
	err := client.Handshake()
	here.Close()
	if err == nil && client.ConnectionState().Version != version {
		err = fmt.Errorf("the version is %x", client.ConnectionState().Version)
	}
	if serverErr := <-served; err == nil && version == tls.VersionTLS12 {
		err = serverErr // in TLS 1.3 the server may still be sending tickets
	}
	return err
}

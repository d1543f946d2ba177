package replica_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/metrics"
	"github.com/crdkit/crdkit/webhook/registration"
	"github.com/crdkit/crdkit/webhook/replica"
)

// A kubelet does not verify the certificate of what it probes.
var insecure = &tls.Config{InsecureSkipVerify: true}

// outside is a registration that does not know the operator's own namespace.
func outside(t *testing.T, opts ...registration.Option) *registration.Webhooks {
	t.Helper()
	_, options := converted(t, "example.com")
	options = append(options, registration.URL("https://127.0.0.1:9443"))
	hooks, err := registration.New("pizza-operator", append(options, opts...)...)
	expect.NoError(t, err)
	return hooks
}

// Mistakes are found at the start, all in one error, and the listener is closed.
func TestRun_Mistakes(t *testing.T) {
	ok := func(*http.Request) error { return nil }
	registry := prometheus.NewRegistry()
	for name, c := range map[string]struct {
		hooks *registration.Webhooks
		opts  []replica.Option
		want  []string
	}{
		"a namespace that is no name":         {outside(t, registration.OwnNamespace("a.b")), nil, []string{`namespace "a.b" of the Secret`}},
		"CAs besides those of another writer": {outside(t), []replica.Option{replica.Certificates(files{}, nil), replica.TrustAuthority()}, []string{"Trust and TrustAuthority: pass the CA bundle of the certificates to Certificates"}},
		"a CA bundle that is nil":             {outside(t), []replica.Option{replica.Trust(nil)}, []string{"Trust: the bundle is nil"}},
		"the authority twice":                 {outside(t), []replica.Option{replica.TrustAuthority()}, []string{"TrustAuthority: add Certificates, or remove TrustAuthority"}},
		"metrics that are taken": {outside(t), []replica.Option{replica.Metrics(func(s webhook.Status) error {
			return errors.Join(metrics.Prometheus(registry, s), metrics.Prometheus(registry, s))
		})}, []string{"the metrics: duplicate metrics collector registration"}},
		"what is taken": {outside(t), []replica.Option{replica.Ready("shutdown", ok), replica.Ready("a", ok), replica.Ready("a", ok)}, []string{`check "shutdown" is given twice`, `check "a" is given twice`}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			expect.NoError(t, err)
			err = replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, l, c.hooks, c.opts...)
			expect.ErrorContains(t, err, c.want...)
			for line := range strings.Lines(fmt.Sprint(err)) {
				if !strings.HasPrefix(line, "replica: ") {
					t.Errorf("the error has the line %q", line)
				}
			}
			if _, err := l.Accept(); err == nil {
				t.Error("the listener is open")
			}
		})
	}
}

// A replica that has no certificate yet, because the API server is away, is alive: a restart would not help.
func TestRun_AliveWithoutCertificate(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- replica.Run(ctx, &rest.Config{Host: "https://127.0.0.1:1"}, l, outside(t), replica.Server(webhook.ShutdownDelay(0)))
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusInternalServerError} {
		resp, err := client.Get("https://" + l.Addr().String() + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", path, resp.Status, want)
		}
	}
	cancel()
	expect.NoError(t, <-done)
}

// files are certificates and a CA bundle of which neither is the other.
type (
	files  struct{ *webhook.FileCertificates }
	bundle struct{}
)

func (bundle) CABundle() []byte          { return []byte("a CA") }
func (bundle) Ready(*http.Request) error { return nil }

// both are certificates and their bundle, of a type whose values cannot be compared.
type both struct {
	files
	bundle
	_ []string
}

func (both) Ready(*http.Request) error { return nil }

func TestRun_CertificatesThatCannotBeCompared(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	err = replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, l, outside(t), replica.Certificates(both{}, both{}),
		replica.Metrics(func(webhook.Status) error { return errors.New("seen") }))
	expect.ErrorContains(t, err, "replica: the metrics: seen")
}

func TestMetrics_SeeBundleOfAnotherSource(t *testing.T) {
	for name, b := range map[string]registration.Bundle{"a CA": bundle{}, "": nil} {
		got := ""
		l, err := net.Listen("tcp", "127.0.0.1:0")
		expect.NoError(t, err)
		err = replica.Run(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, l, outside(t), replica.Certificates(files{}, b),
			replica.Metrics(func(status webhook.Status) error {
				if status.CABundle != nil {
					got = string(status.CABundle())
				}
				return errors.New("seen")
			}))
		expect.ErrorContains(t, err, "replica: the metrics: seen")
		if got != name {
			t.Errorf("the bundle is %q, want %q", got, name)
		}
	}
}

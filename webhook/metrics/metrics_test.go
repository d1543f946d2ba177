package metrics_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/webhooktest"
	"github.com/crdkit/crdkit/webhook"
	"github.com/crdkit/crdkit/webhook/metrics"
)

// certificates has a certificate and a CA, or nothing yet.
type certificates struct {
	served *tls.Certificate
	bundle []byte
}

func (c *certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.served == nil {
		return nil, errors.New("not yet")
	}
	return c.served, nil
}

// The metrics say when certificates expire.
func TestPrometheus_CertificateExpiry(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	c := &certificates{}
	expect.NoError(t, metrics.Prometheus(registry, webhook.Status{Certificates: c, CABundle: func() []byte { return c.bundle }}))
	const form = `
# HELP crdkit_webhook_ca_certificates CA certificates that the API server is told to trust.
# TYPE crdkit_webhook_ca_certificates gauge
crdkit_webhook_ca_certificates %d
# HELP crdkit_webhook_ca_expiry_timestamp_seconds Latest expiry time of the CA certificates, or 0 if there are none.
# TYPE crdkit_webhook_ca_expiry_timestamp_seconds gauge
crdkit_webhook_ca_expiry_timestamp_seconds %d
# HELP crdkit_webhook_certificate_expiry_timestamp_seconds Expiry time of the serving certificate, or 0 if there is none.
# TYPE crdkit_webhook_certificate_expiry_timestamp_seconds gauge
crdkit_webhook_certificate_expiry_timestamp_seconds %d
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(form, 0, 0, 0))); err != nil {
		t.Errorf("before there are any: %v", err)
	}
	ca, chain, key := webhooktest.SelfSigned(t, "localhost")
	pair, err := tls.X509KeyPair(chain, key)
	expect.NoError(t, err)
	cas, err := cert.ParseCertsPEM(ca)
	expect.NoError(t, err)
	c.served, c.bundle = &pair, ca
	want := fmt.Sprintf(form, 1, cas[0].NotAfter.Unix(), pair.Leaf.NotAfter.Unix())
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want)))
}

func TestPrometheus_NamesFieldsThatDiffer(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	differences := func(yield func(kind, name, field string)) {
		yield("CustomResourceDefinition", "pizzas.example.com", "spec.conversion.strategy")
		yield("MutatingWebhookConfiguration", "pizza-operator", "")
	}
	expect.NoError(t, metrics.Prometheus(registry, webhook.Status{Differences: differences}))
	const want = `
# HELP crdkit_webhook_registration_difference 1 for each field of a webhook configuration, definition or guard that is not as it is declared.
# TYPE crdkit_webhook_registration_difference gauge
crdkit_webhook_registration_difference{field="",kind="MutatingWebhookConfiguration",name="pizza-operator"} 1
crdkit_webhook_registration_difference{field="spec.conversion.strategy",kind="CustomResourceDefinition",name="pizzas.example.com"} 1
`
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "crdkit_webhook_registration_difference"))
}

func TestPrometheus_CountsChanges(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	changes := func(yield func(kind, name, reason string, total int)) {
		yield("Secret", "pizza-operator-webhook", "CARotated", 3)
		yield("Secret", "pizza-operator-webhook", "UnknownCA", 0)
	}
	expect.NoError(t, metrics.Prometheus(registry, webhook.Status{Changes: changes}))
	const want = `
# HELP crdkit_webhook_changes_total Changes of the CA and the CA bundles by this replica.
# TYPE crdkit_webhook_changes_total counter
crdkit_webhook_changes_total{kind="Secret",name="pizza-operator-webhook",reason="CARotated"} 3
crdkit_webhook_changes_total{kind="Secret",name="pizza-operator-webhook",reason="UnknownCA"} 0
`
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "crdkit_webhook_changes_total"))
}

// Certificates without a bundle have one metric.
func TestPrometheus_WithoutBundle(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	expect.NoError(t, metrics.Prometheus(registry, webhook.Status{Certificates: &certificates{}}))
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 1 {
		t.Errorf("got %d metrics, %v", n, err)
	}
	if err := metrics.Prometheus(registry, webhook.Status{Certificates: &certificates{}}); err == nil {
		t.Error("registered twice")
	}
}

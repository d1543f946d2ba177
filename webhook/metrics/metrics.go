// Package metrics tells Prometheus how long the certificates of a webhook are still
// valid, and whether the webhook is registered as it is declared:
//
//	err := metrics.Prometheus(registry, certs)
//
// For the certificates of webhook/replica, give that to replica.Metrics.
//
// It is a package of its own: only its importers depend on the Prometheus client. It
// serves no metrics: that is promhttp's business. The packages
// conversion/metrics and admission/metrics measure what the webhooks have answered. These are the metrics:
//
//   - crdkit_webhook_certificate_expiry_timestamp_seconds: when the serving certificate
//     expires, in seconds since 1970; 0 before the first certificate;
//   - crdkit_webhook_ca_expiry_timestamp_seconds: when the CA certificate that is valid
//     longest expires; 0 before the first CA;
//   - crdkit_webhook_ca_certificates: how many CA certificates the API server is told to
//     trust;
//   - crdkit_webhook_registration_difference, with the labels kind, name and field: 1 for each
//     field of a webhook configuration or definition that is not as this release declares it. In
//     a rolling update there may be some for a while.
//
// Those of the CAs are there if the certificates come with a CA bundle, as those of
// webhook/authority do. The last one is there in webhook/replica.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook"
)

// Prometheus registers the metrics of certificates. The error is that of
// [prometheus.Registerer].Register, such as when the metrics are there already.
func Prometheus(r prometheus.Registerer, certs webhook.Certificates) error {
	gauges := []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "crdkit_webhook_certificate_expiry_timestamp_seconds",
		Help: "When the serving certificate expires, 0 if there is none.",
	}, func() float64 {
		c, err := certs.GetCertificate(nil)
		if err != nil || c == nil || c.Leaf == nil {
			return 0
		}
		return seconds(c.Leaf.NotAfter)
	})}
	if b, ok := certs.(interface {
		CABundle() []byte
	}); ok {
		gauges = append(gauges,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "crdkit_webhook_ca_expiry_timestamp_seconds",
				Help: "When the CA certificate that is valid longest expires, 0 if there is none.",
			}, func() float64 {
				var last time.Time
				cas, _ := cert.ParseCertsPEM(b.CABundle()) // on an error, cas is empty
				for _, ca := range cas {
					if ca.NotAfter.After(last) {
						last = ca.NotAfter
					}
				}
				return seconds(last)
			}),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "crdkit_webhook_ca_certificates",
				Help: "CA certificates that the API server is told to trust.",
			}, func() float64 {
				cas, _ := cert.ParseCertsPEM(b.CABundle())
				return float64(len(cas))
			}))
	}
	if d, ok := certs.(registered); ok {
		gauges = append(gauges, differences{d, prometheus.NewDesc("crdkit_webhook_registration_difference",
			"1 for each field of a webhook configuration or definition that is not as it is declared.", []string{"kind", "name", "field"}, nil)})
	}
	for _, g := range gauges {
		if err := r.Register(g); err != nil {
			return err
		}
	}
	return nil
}

// registered are certificates that come with a registration.
type registered interface {
	// Differences yields the fields that are not as they are declared.
	Differences(yield func(kind, name, field string))
}

// differences collects one metric for each.
type differences struct {
	registered
	desc *prometheus.Desc
}

func (d differences) Describe(descs chan<- *prometheus.Desc) { descs <- d.desc }

func (d differences) Collect(metrics chan<- prometheus.Metric) {
	d.Differences(func(kind, name, field string) {
		metrics <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, 1, kind, name, field)
	})
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}

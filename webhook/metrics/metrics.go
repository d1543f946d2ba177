// Package metrics exports Prometheus metrics of the certificates and the registration of
// webhooks:
//
//	err := metrics.Prometheus(registry, webhook.Status{Certificates: certs})
//
// With webhook/replica, call Prometheus in the function that you give to replica.Metrics, which gets
// the status of the replica.
//
// Use promhttp to serve the metrics of the registry. The packages conversion/metrics and
// admission/metrics export metrics of the responses of webhooks. These are the metrics:
//
//   - crdkit_webhook_certificate_expiry_timestamp_seconds is the expiry of the serving
//     certificate, in seconds since 1970. It is 0 before the first certificate.
//   - crdkit_webhook_ca_expiry_timestamp_seconds is the latest expiry of a CA certificate in
//     the CA bundle. It is 0 before the first CA.
//   - crdkit_webhook_ca_certificates is the number of CA certificates that the API server
//     should trust.
//   - crdkit_webhook_registration_difference, with the labels kind, name and field, is 1 for each
//     field of a webhook configuration, CustomResourceDefinition or guard (registration.Guard) that differs from its
//     declaration in this release of your operator, as some do during a rolling update.
//   - crdkit_webhook_changes_total, with the labels kind, name and reason, counts the changes that
//     this replica made by itself to the Secret of the CA, and to the CA bundles of webhook
//     configurations and CustomResourceDefinitions. The packages webhook/authority and
//     webhook/registration list the reasons.
//
// The metrics of a [webhook.Status] exist only for its fields that are set. webhook/replica sets all of
// them, except the CA bundle if another program writes it.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/cert"

	"github.com/crdkit/crdkit/webhook"
)

// Prometheus registers the metrics of the fields of status that are not nil. It returns the error of
// [prometheus.Registerer].Register, for example if the metrics are already registered.
func Prometheus(r prometheus.Registerer, status webhook.Status) error {
	var collectors []prometheus.Collector
	gauge := func(name, help string, value func() float64) {
		collectors = append(collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	if status.Certificates != nil {
		gauge("crdkit_webhook_certificate_expiry_timestamp_seconds", "Expiry time of the serving certificate, or 0 if there is none.", func() float64 {
			c, err := status.Certificates.GetCertificate(nil)
			if err != nil || c == nil || c.Leaf == nil {
				return 0
			}
			return float64(c.Leaf.NotAfter.Unix())
		})
	}
	if status.CABundle != nil {
		gauge("crdkit_webhook_ca_expiry_timestamp_seconds", "Latest expiry time of the CA certificates, or 0 if there are none.", func() float64 {
			last := time.Unix(0, 0)
			cas, _ := cert.ParseCertsPEM(status.CABundle()) // on an error, cas is empty
			for _, ca := range cas {
				if ca.NotAfter.After(last) {
					last = ca.NotAfter
				}
			}
			return float64(last.Unix())
		})
		gauge("crdkit_webhook_ca_certificates", "CA certificates that the API server is told to trust.", func() float64 {
			cas, _ := cert.ParseCertsPEM(status.CABundle())
			return float64(len(cas))
		})
	}
	if status.Differences != nil {
		desc := prometheus.NewDesc("crdkit_webhook_registration_difference",
			"1 for each field of a webhook configuration, definition or guard that is not as it is declared.", []string{"kind", "name", "field"}, nil)
		collectors = append(collectors, collector{desc, func(metrics chan<- prometheus.Metric) {
			status.Differences(func(kind, name, field string) {
				metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, kind, name, field)
			})
		}})
	}
	if status.Changes != nil {
		desc := prometheus.NewDesc("crdkit_webhook_changes_total",
			"Changes of the CA and the CA bundles by this replica.", []string{"kind", "name", "reason"}, nil)
		collectors = append(collectors, collector{desc, func(metrics chan<- prometheus.Metric) {
			status.Changes(func(kind, name, reason string, total int) {
				metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(total), kind, name, reason)
			})
		}})
	}
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// collector collects metrics of one description, of which there may be any number.
type collector struct {
	desc    *prometheus.Desc
	collect func(chan<- prometheus.Metric)
}

func (c collector) Describe(descs chan<- *prometheus.Desc)   { descs <- c.desc }
func (c collector) Collect(metrics chan<- prometheus.Metric) { c.collect(metrics) }

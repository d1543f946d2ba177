// Package metrics measures admission webhooks with Prometheus:
//
//	observe, err := metrics.Prometheus(registry)
//	mux.Handle("/mutate", admission.NewHandler(s, observe("mutate"), …))
//	mux.Handle("/validate", admission.NewHandler(s, observe("validate"), …))
//
// It is a package of its own, so that package admission does not import Prometheus. It
// serves no metrics: see promhttp. These are the metrics:
//
//   - crdkit_admission_requests_total, by webhook, group, version, kind, operation,
//     subresource and decision;
//   - crdkit_admission_duration_seconds, a histogram: how long a request took, by the
//     same labels without the version.
//
// The decision is allowed, patched, denied or undecided: see
// [github.com/crdkit/crdkit/admission.Decision]. The webhook is the name that the
// author gave. Clients cannot add labels: group, version and kind
// are empty where [github.com/crdkit/crdkit/admission.Observation] has none, and a
// subresource other than those of a custom resource, status and scale, is called other.
//
// # Beside other metrics
//
// The API server counts what it made of a webhook's answers, by the name in the
// webhook's configuration, type and operation: apiserver_admission_webhook_request_total
// and apiserver_admission_webhook_admission_duration_seconds, with the network in it.
// Requests that never arrived are only in apiserver_admission_webhook_rejection_count
// and apiserver_admission_webhook_fail_open_count. These have neither kind and version nor
// whether there was a patch.
//
// controller-runtime counts requests by path and HTTP status
// (controller_runtime_webhook_requests_total), which is 200 also for a denial.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdkit/crdkit/admission"
)

// Prometheus registers the metrics and returns a function that makes, of the name of
// a webhook, the option that counts its handler's requests. All handlers share the
// metrics; several may have the same name. The error is that of
// [prometheus.Registerer].Register, such as when the metrics are there already.
func Prometheus(r prometheus.Registerer) (func(webhook string) admission.Option, error) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crdkit_admission_requests_total",
		Help: "Admission requests, by decision.",
	}, []string{"webhook", "group", "version", "kind", "operation", "subresource", "decision"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "crdkit_admission_duration_seconds",
		Help: "How long an admission request took, from its head to the end of the answer.",
		// 10 µs to 42 s: the API server waits for 30 s at most.
		Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12),
	}, []string{"webhook", "group", "kind", "operation", "subresource", "decision"})
	for _, c := range []prometheus.Collector{requests, duration} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return func(webhook string) admission.Option {
		return admission.Observe(func(o admission.Observation) {
			operation, subresource, decision := string(o.Operation), known(o.SubResource), string(o.Decision)
			requests.WithLabelValues(webhook, o.Kind.Group, o.Kind.Version, o.Kind.Kind, operation, subresource, decision).Inc()
			duration.WithLabelValues(webhook, o.Kind.Group, o.Kind.Kind, operation, subresource, decision).Observe(o.Duration.Seconds())
		})
	}, nil
}

// known returns the name of a subresource of a custom resource; other for any other.
func known(subresource string) string {
	switch subresource {
	case "", "status", "scale":
		return subresource
	default:
		return "other"
	}
}

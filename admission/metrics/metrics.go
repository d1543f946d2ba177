// Package metrics exports Prometheus metrics of admission webhooks:
//
//	observe, err := metrics.Prometheus(registry)
//	mux.Handle("/mutate", admission.NewHandler(s, observe("mutate"), …))
//	mux.Handle("/validate", admission.NewHandler(s, observe("validate"), …))
//
// Use promhttp to serve the metrics of the registry:
//
//   - crdkit_admission_requests_total counts requests, with the labels webhook, group,
//     version, kind, operation, subresource and decision.
//   - crdkit_admission_duration_seconds is a histogram of the duration of requests, with the
//     same labels except version.
//
// The label webhook is the name that you give. The label decision is allowed, patched, denied
// or undecided; see [github.com/crdkit/crdkit/admission.Decision].
//
// Clients cannot add label values: group, version and kind are empty if
// [github.com/crdkit/crdkit/admission.Observation] has no kind, and subresource is status, scale,
// other, or empty for the resource itself.
//
// # Metrics of other programs
//
// The API server counts the responses of webhooks, by the name in the webhook configuration,
// the type and the operation:
//
//   - apiserver_admission_webhook_request_total
//   - apiserver_admission_webhook_admission_duration_seconds, which includes the network
//
// Only two of its metrics count requests that never arrived:
//
//   - apiserver_admission_webhook_rejection_count
//   - apiserver_admission_webhook_fail_open_count
//
// None of them has the kind, the version, or whether there was a patch.
//
// controller-runtime counts requests by path and HTTP status, which is 200 even if the request is
// denied (controller_runtime_webhook_requests_total).
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdkit/crdkit/admission"
)

// Prometheus registers the metrics, and returns a function that takes the name of a webhook and
// returns the option for [admission.NewHandler]. All handlers share the metrics, and several
// handlers may have the same name.
//
// Prometheus returns the error of [prometheus.Registerer].Register, for example if the metrics
// are already registered.
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

// known returns the subresource if custom resources have it, and otherwise "other".
func known(subresource string) string {
	switch subresource {
	case "", "status", "scale":
		return subresource
	default:
		return "other"
	}
}

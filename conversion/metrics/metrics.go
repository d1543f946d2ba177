// Package metrics exports Prometheus metrics of a conversion webhook:
//
//	option, err := metrics.Prometheus(registry)
//	mux.Handle("/convert", conversion.NewHandler(reg, option))
//
// Use promhttp to serve the metrics of the registry:
//
//   - crdkit_conversion_reviews_total, by result: success or failure;
//   - crdkit_conversion_duration_seconds, a histogram of the duration of reviews, by group, kind, from and to of one
//     object. Most reviews of the API server have only one;
//   - crdkit_conversion_objects_total, by group, kind, from and to: the objects that
//     were converted, or had the version already;
//   - crdkit_conversion_failures_total, by group, kind, from and to: the failed reviews, by the
//     first object that failed. The labels are empty if the registry does not know its kind or
//     version, or if no object failed.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdkit/crdkit/conversion"
)

// Prometheus registers the metrics and returns the option that counts a handler's reviews. Several
// handlers may have the same option. It returns the error of [prometheus.Registerer].Register, for
// example if the metrics are already registered.
func Prometheus(r prometheus.Registerer) (conversion.Option, error) {
	labels := []string{"group", "kind", "from", "to"}
	reviews := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crdkit_conversion_reviews_total",
		Help: "ConversionReviews, by result.",
	}, []string{"result"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "crdkit_conversion_duration_seconds",
		Help:    "How long the conversion of the objects of a ConversionReview took.",
		Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12), // 10 µs to 42 s: the API server waits for 30 s
	}, labels)
	objects := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crdkit_conversion_objects_total",
		Help: "Objects that were converted or had the version already.",
	}, labels)
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crdkit_conversion_failures_total",
		Help: "ConversionReviews that failed, by the first object that failed.",
	}, labels)
	for _, c := range []prometheus.Collector{reviews, duration, objects, failures} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return conversion.Observe(func(o conversion.Observation) {
		kind := o.Failed
		for kind = range o.Objects { // any of them
		}
		duration.WithLabelValues(kind.Group, kind.Kind, kind.Version, o.To.Version).Observe(o.Duration.Seconds())
		if o.Err != nil {
			reviews.WithLabelValues("failure").Inc()
			failures.WithLabelValues(o.Failed.Group, o.Failed.Kind, o.Failed.Version, o.To.Version).Inc()
			return
		}
		reviews.WithLabelValues("success").Inc()
		for kind, n := range o.Objects {
			objects.WithLabelValues(kind.Group, kind.Kind, kind.Version, o.To.Version).Add(float64(n))
		}
	}), nil
}

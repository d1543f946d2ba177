// Package metrics exports the progress of migrations to Prometheus:
//
//	observe, err := metrics.Prometheus(registry)
//	report, err := migrate.Run(ctx, config, crd, migrate.Observe(observe(crd)))
//
// Use promhttp to serve the metrics of the registry:
//
//   - crdkit_migration_objects, by crd and result: the number of objects that were rewritten, were
//     current already, were deleted meanwhile, or failed, in the running or last migration;
//   - crdkit_migration_objects_expected, by crd: the API server's estimate of the number of
//     objects.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// Prometheus registers the metrics, and returns a function that takes the name of a CRD and returns
// the function for [migrate.Observe]. It returns the error of [prometheus.Registerer].Register, for
// example if the metrics are already registered.
func Prometheus(r prometheus.Registerer) (observe func(crd string) func(migrate.Progress), err error) {
	objects := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crdkit_migration_objects",
		Help: "Objects that a migration is through with, by result.",
	}, []string{"crd", "result"})
	total := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "crdkit_migration_objects_expected",
		Help: "Objects that there are to migrate, as the API server estimates.",
	}, []string{"crd"})
	for _, c := range []prometheus.Collector{objects, total} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return func(crd string) func(migrate.Progress) {
		return func(p migrate.Progress) {
			for result, n := range map[string]int64{"rewritten": p.Rewritten, "current": p.Current, "gone": p.Gone, "failed": p.Failed} {
				objects.WithLabelValues(crd, result).Set(float64(n))
			}
			total.WithLabelValues(crd).Set(float64(p.Total))
		}
	}, nil
}

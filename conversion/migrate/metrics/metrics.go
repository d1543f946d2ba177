// Package metrics shows with Prometheus how far migrations of stored objects are:
//
//	observe, err := metrics.Prometheus(registry)
//	report, err := migrate.Run(ctx, config, crd, migrate.Observe(observe(crd)))
//
// It is a package of its own: only its importers depend on the Prometheus client. It
// serves no metrics: that is promhttp's business. These are the metrics:
//
//   - crdkit_migration_objects, by crd and result: how many objects were rewritten, were
//     current already, have gone meanwhile, or failed, in the migration that runs or ran
//     last;
//   - crdkit_migration_objects_expected, by crd: how many there are, as the API server
//     estimates.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// Prometheus registers the metrics and returns what makes the function for
// [migrate.Observe], for a definition by its name. The error is that of
// [prometheus.Registerer].Register, such as when the metrics are there already.
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

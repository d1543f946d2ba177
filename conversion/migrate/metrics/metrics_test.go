package metrics_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/crdkit/crdkit/conversion/migrate"
	"github.com/crdkit/crdkit/conversion/migrate/metrics"
	"github.com/crdkit/crdkit/test/expect"
)

func ExamplePrometheus() {
	registry := prometheus.NewRegistry()
	observe, err := metrics.Prometheus(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	// This is what Run does, where it gets migrate.Observe(observe("pizzas.example.com")).
	observe("pizzas.example.com")(migrate.Progress{Total: 10, Rewritten: 4, Failed: 1})
	n, err := testutil.GatherAndCount(registry)
	fmt.Println(n, err)
	// Output: 5 <nil>
}

// The numbers are of the last migration.
func TestPrometheus_LastMigration(t *testing.T) {
	registry := prometheus.NewRegistry()
	observe, err := metrics.Prometheus(registry)
	expect.NoError(t, err)
	pizzas := observe("pizzas.example.com")
	pizzas(migrate.Progress{Total: 10, Rewritten: 4, Current: 3, Gone: 2, Failed: 1})
	pizzas(migrate.Progress{Total: 12, Rewritten: 1, Current: 11})
	want := `
		# HELP crdkit_migration_objects Objects that a migration is through with, by result.
		# TYPE crdkit_migration_objects gauge
		crdkit_migration_objects{crd="pizzas.example.com",result="current"} 11
		crdkit_migration_objects{crd="pizzas.example.com",result="failed"} 0
		crdkit_migration_objects{crd="pizzas.example.com",result="gone"} 0
		crdkit_migration_objects{crd="pizzas.example.com",result="rewritten"} 1
		# HELP crdkit_migration_objects_expected Objects that there are to migrate, as the API server estimates.
		# TYPE crdkit_migration_objects_expected gauge
		crdkit_migration_objects_expected{crd="pizzas.example.com"} 12
	`
	expect.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want)))
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if _, err := metrics.Prometheus(registry); err == nil {
		t.Error("they were registered twice")
	}
}

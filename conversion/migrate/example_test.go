package migrate_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/conversion/migrate"
)

// Run moves the objects to the storage version. Then Remove removes the first version, which
// is not served any longer.
func Example() {
	retire := func(ctx context.Context, config *rest.Config) error {
		const crd = "pizzas.restaurant.example.com"
		report, err := migrate.Run(ctx, config, crd, migrate.Rate(500), migrate.Observe(func(p migrate.Progress) {
			fmt.Printf("%d of %d\n", p.Done(), p.Total)
		}))
		if err != nil {
			return err // the error names the objects that were refused
		}
		fmt.Println(report.Rewritten, "objects are stored in", report.Storage)
		return migrate.Remove(ctx, config, crd, "v1alpha1")
	}
	_ = retire // needs a cluster
}

// On a manager of controller-runtime: mgr.Add(controller).
func ExampleController() {
	lead := func(ctx context.Context, config *rest.Config) error { // where this replica is the leader
		controller, err := migrate.NewController(config, []string{"pizzas.restaurant.example.com"})
		if err != nil {
			return err
		}
		return controller.Start(ctx)
	}
	_ = lead // it needs a cluster
}

func ExamplePolicyRules() {
	for _, rule := range migrate.PolicyRules("pizzas.restaurant.example.com") {
		fmt.Println(rule.Verbs, rule.Resources, rule.APIGroups, rule.ResourceNames)
	}
	// Output:
	// [get patch] [customresourcedefinitions] [apiextensions.k8s.io] [pizzas.restaurant.example.com]
	// [patch] [customresourcedefinitions/status] [apiextensions.k8s.io] [pizzas.restaurant.example.com]
	// [get list patch] [pizzas] [restaurant.example.com] []
	// [patch] [pizzas/status] [restaurant.example.com] []
}

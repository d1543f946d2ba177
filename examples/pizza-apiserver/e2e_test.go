package apiserver_test

import (
	"testing"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/internal/walkthrough"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
)

// TestRestaurant runs the steps of the demo. They build upon each other: after a failure the
// rest is not run.
func TestRestaurant(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t, controlplane.Aggregation())
	restaurant := open(t, cp)
	for _, step := range restaurant.Steps() {
		if !t.Run(step.Name, func(t *testing.T) {
			expect.NoError(t, step.Run(t.Context()))
		}) {
			return
		}
	}
}

// open prepares a restaurant on a control plane, and closes it after the test.
func open(t *testing.T, cp *controlplane.ControlPlane) *walkthrough.Restaurant {
	t.Helper()
	restaurant, err := walkthrough.Open(cp, gobuild.Binary(t, "./cmd/pizza-apiserver"), t.Output())
	expect.NoError(t, err)
	t.Cleanup(func() {
		if err := restaurant.Close(); err != nil {
			t.Errorf("the server did not stop in order: %v", err)
		}
	})
	return restaurant
}

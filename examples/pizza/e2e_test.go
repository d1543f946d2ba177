package pizza_test

import (
	"strings"
	"testing"

	"github.com/crdkit/crdkit/examples/internal/show"
	"github.com/crdkit/crdkit/examples/pizza/internal/walkthrough"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
	"github.com/crdkit/crdkit/test/tier"
)

// TestRestaurant runs the steps of the demos: on a real control plane, and with the same kubectl on
// the embedded server.
func TestRestaurant(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	binary := build(t)
	t.Run("kube-apiserver", func(t *testing.T) { walk(t, cp, binary) })
	t.Run("embedded", func(t *testing.T) {
		embedded, err := walkthrough.StartEmbedded(cp.Kubectl())
		expect.NoError(t, err)
		defer func() {
			if err := embedded.Stop(); err != nil {
				t.Error(err)
			}
		}()
		walk(t, embedded, binary)
	})
}

// walk runs the steps. They build upon each other: after a failure the rest is not run.
func walk(t *testing.T, cluster show.Cluster, binary string) {
	restaurant, err := walkthrough.Open(cluster, binary, t.Output())
	expect.NoError(t, err)
	defer func() {
		if err := restaurant.Close(); err != nil {
			t.Errorf("the operator did not stop in order: %v", err)
		}
	}()
	for _, step := range restaurant.Steps() {
		if strings.HasPrefix(step.Name, "v1beta1 reviews: ") && !tier.Verify() {
			return // the same once more
		}
		if !t.Run(step.Name, func(t *testing.T) {
			expect.NoError(t, step.Run(t.Context()))
		}) {
			return
		}
	}
}

// build builds the operator, and returns the path of the binary.
func build(t *testing.T) string { return gobuild.Binary(t, "./cmd/pizza-operator") }

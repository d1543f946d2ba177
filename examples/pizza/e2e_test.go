package pizza_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/crdkit/crdkit/examples/pizza/internal/walkthrough"
	"github.com/crdkit/crdkit/internal/controlplane"
)

// TestRestaurant runs the steps of the demo. They build upon each other: after a
// failure the rest is not run.
func TestRestaurant(t *testing.T) {
	cp := controlplane.ForTest(t)
	restaurant, err := walkthrough.Open(cp, build(t), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := restaurant.Close(); err != nil {
			t.Errorf("the operator did not stop in order: %v", err)
		}
	}()
	for _, step := range restaurant.Steps() {
		if !t.Run(step.Name, func(t *testing.T) {
			if err := step.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}) {
			return
		}
	}
}

// build builds the operator, and returns the path of the binary.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "pizza-operator")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", binary, "./cmd/pizza-operator").CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v\n%s", err, output)
	}
	return binary
}

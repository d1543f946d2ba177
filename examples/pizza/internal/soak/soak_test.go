package soak_test

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/crdkit/crdkit/examples/pizza/internal/soak"
	"github.com/crdkit/crdkit/internal/controlplane"
)

// TestTwoMinutesOfSoaking is the short form of `make soak T=10m`.
func TestTwoMinutesOfSoaking(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two minutes")
	}
	cp := controlplane.ForTest(t)
	binary := filepath.Join(t.TempDir(), "pizza-operator")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", binary, "../../cmd/pizza-operator").CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v\n%s", err, output)
	}
	report, err := soak.Run(t.Context(), cp, binary, 2*time.Minute, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
	if report.Problems != nil {
		t.Error(report.Problems)
	}
	if report.Failed > 0 || report.Requests < 1000 || report.Rotations < 10 || report.Kills < 4 {
		t.Error("want no failed request of at least 1000, 10 rotations and 4 kills")
	}
}

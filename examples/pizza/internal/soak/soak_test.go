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
	// Not yet none: where a replica stops in order, a request that the API server sends on an idle
	// connection of HTTP/1.1, in the moment in which that is closed, is lost. That was seen twice in
	// 30 restarts.
	if report.Failed > 3 || report.Requests < 1000 || report.Rotations < 10 || report.Kills < 4 {
		t.Error("want at most 3 failed requests of at least 1000, 10 rotations and 4 kills")
	}
}

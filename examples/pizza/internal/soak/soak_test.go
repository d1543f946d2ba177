package soak_test

import (
	"testing"
	"time"

	"github.com/crdkit/crdkit/examples/pizza/internal/soak"
	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/gobuild"
	"github.com/crdkit/crdkit/test/tier"
)

// TestRun_TwoMinutes is the short form of `make soak T=10m`.
func TestRun_TwoMinutes(t *testing.T) {
	tier.VerifyOnly(t, "takes two minutes")
	cp := controlplane.ForTest(t)
	report, err := soak.Run(t.Context(), cp, gobuild.Binary(t, "../../cmd/pizza-operator"), 2*time.Minute, t.Output())
	expect.NoError(t, err)
	t.Log(report)
	if report.Problems != nil {
		t.Error(report.Problems)
	}
	if report.Failed > 0 || report.Requests < 1000 || report.Rotations < 10 || report.Kills < 2 || report.Updates < 1 {
		t.Error("want no failed request of at least 1000, 10 rotations, 2 kills and a rolling update")
	}
}

package controlplane

import (
	"errors"
	"os"
	"testing"
)

// ForTest starts a control plane for t and stops it when t and its subtests are
// done. Without binaries it skips t; if CRDKIT_REQUIRE_CONTROLPLANE is 1, it
// fails t instead, so that a test run that must prove something cannot skip
// silently.
//
// A start takes seconds: start one for many subtests.
func ForTest(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), opts...)
	if errors.Is(err, ErrNoBinaries) && os.Getenv("CRDKIT_REQUIRE_CONTROLPLANE") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

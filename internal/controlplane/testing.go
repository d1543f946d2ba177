package controlplane

import (
	"errors"
	"os"
	"testing"
)

const (
	// Attribute is the key of the attribute (testing.TB.Attr) that ForTest gives a
	// test. Its value is the version of the API server, or Missing.
	Attribute = "kube-apiserver"
	// Missing is that there are no binaries.
	Missing = "missing"
)

// ForTest starts a control plane for t and stops it when t and its subtests are
// done. Without binaries it skips t; if CRDKIT_REQUIRE_CONTROLPLANE is 1, it
// fails t instead, so that a test run that must prove something cannot skip
// silently.
//
// Either way t gets the attribute [Attribute], from which package matrix knows that
// t needs a control plane, and which it had.
//
// A start takes seconds: start one for many subtests.
func ForTest(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), opts...)
	if errors.Is(err, ErrNoBinaries) {
		t.Attr(Attribute, Missing)
	}
	if errors.Is(err, ErrNoBinaries) && os.Getenv("CRDKIT_REQUIRE_CONTROLPLANE") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Attr(Attribute, cp.Version())
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

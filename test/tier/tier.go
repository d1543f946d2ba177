// Package tier tells the two tiers of tests apart:
//
//	make test    what a contributor runs before each push, in minutes
//	make verify  what takes longer too, and again the first tier with the race detector
//
// A test that needs minutes, or a longer run of the same, belongs to the second:
//
//	tier.VerifyOnly(t, "replays a page")
//	seeds := tier.Pick(1, 10)
package tier

import (
	"os"
	"testing"
)

// Variable is the environment variable that `make verify` sets to 1.
const Variable = "CRDKIT_VERIFY"

// Verify reports whether this is a run of `make verify`.
func Verify() bool { return os.Getenv(Variable) == "1" }

// VerifyOnly skips t in `make test`. The reason says what t does.
func VerifyOnly(t testing.TB, reason string) {
	t.Helper()
	if !Verify() {
		t.Skipf("make verify runs this test: it %s", reason)
	}
}

// Pick returns the first value in `make test`, and the second in `make verify`.
func Pick[T any](test, verify T) T {
	if Verify() {
		return verify
	}
	return test
}

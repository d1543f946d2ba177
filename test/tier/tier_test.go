package tier_test

import (
	"testing"

	"github.com/crdkit/crdkit/test/tier"
)

func TestVerifyOnly(t *testing.T) {
	for value, runs := range map[string]bool{"": false, "0": false, "1": true} {
		t.Run("with "+value, func(t *testing.T) {
			t.Setenv(tier.Variable, value)
			ran := false
			t.Run("test", func(t *testing.T) {
				tier.VerifyOnly(t, "is an example")
				ran = true
			})
			if ran != runs || tier.Pick(1, 10) != map[bool]int{false: 1, true: 10}[runs] {
				t.Errorf("it ran: %v, Pick returned %d; want %v", ran, tier.Pick(1, 10), runs)
			}
		})
	}
}

package registration

import (
	"slices"
	"testing"

	"github.com/crdkit/crdkit/test/webhooktest"
)

func TestTrusts_AllCertificates(t *testing.T) {
	a, _, _ := webhooktest.SelfSigned(t, "a")
	b, _, _ := webhooktest.SelfSigned(t, "b")
	garbage := []byte("# somebody's\n")
	for name, c := range map[string]struct {
		bundle, pem []byte
		want        bool
	}{
		"the same":      {a, a, true},
		"another":       {b, a, false},
		"more":          {slices.Concat(b, garbage, a), a, true},
		"fewer":         {a, slices.Concat(a, b), false},
		"another order": {slices.Concat(b, a), slices.Concat(a, b), true},
		"one twice":     {slices.Concat(a, a), slices.Concat(a, b), false},
		"none":          {nil, a, false},
		"garbage":       {garbage, a, false},
		"of nothing":    {a, garbage, false},
	} {
		if got := trusts(c.bundle, c.pem); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

package authority

import (
	"fmt"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

// After a long downtime, an expired CA is replaced at once. A month of nothing: the CA has expired,
// or is about to.
func TestDowntime_ExpiredCA(t *testing.T) {
	for _, test := range []struct {
		down time.Duration
		same bool
	}{{20 * day, true}, {31 * day, false}, {400 * day, false}} {
		t.Run(fmt.Sprint(test.down), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				r := started(t, c, CALifetime(30*day))
				old := c.state(t)
				r.stop()
				time.Sleep(test.down)
				if err := r.Ready(nil); (err == nil) != test.same { // a certificate lives with its CA
					t.Errorf("the certificate: %v", err)
				}
				r = run(t, c, CALifetime(30*day))
				time.Sleep(time.Second)
				r.wantsWell(t, c)
				s := c.state(t)
				if same := s.current.cert.Equal(old.current.cert); same != test.same {
					t.Errorf("the CA is the same: %t", same)
				}
				if s.trusts(old.current.cert) != test.same {
					t.Errorf("the old CA is trusted: %t", !test.same)
				}
				if test.same && s.next == nil {
					t.Error("the rotation is due")
				}
			})
		})
	}
}

// A next CA takes over at once where the current one has expired.
func TestDowntime_NextCA(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		current := makeCA(t, time.Now(), time.Hour)
		next, err := current.crossed(makeCA(t, time.Now(), day))
		expect.NoError(t, err)
		c.put(encoded(t, &state{current: current, next: next}))
		time.Sleep(2 * time.Hour)
		r := run(t, c)
		time.Sleep(time.Second)
		r.wantsWell(t, c)
		r.wantsIssuer(t, next.cert)
	})
}

package authority

import (
	"fmt"
	"testing"
	"time"
)

func TestAWrongClockDoesNotMatter(t *testing.T) {
	for _, offset := range []time.Duration{-365 * day, -day, -time.Minute, time.Minute, day, 365 * day} {
		t.Run(offset.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				c.offset.Store(int64(offset))
				r := run(t, c)
				time.Sleep(start)
				r.wantsWell(t, c)
				leaf, _ := r.GetCertificate(nil)
				if got := leaf.Leaf.NotAfter.Sub(c.now()) - day; got.Abs() > 2*start {
					t.Errorf("the certificate is valid for a day and %s", got)
				}
				if n := c.written(); n != 1 {
					t.Errorf("there were %d writes", n)
				}
			})
		})
	}
}

func TestTheAPIServersClockMayBePutRight(t *testing.T) {
	for _, jump := range []time.Duration{-365 * day, -2 * day, 2 * day, 365 * day} {
		t.Run(jump.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				r := run(t, c)
				time.Sleep(start)
				old := c.state(t)
				c.offset.Store(int64(jump))
				time.Sleep(20 * time.Second)
				r.wantsWell(t, c)
				s := c.state(t)
				if same := s.current.cert.Equal(old.current.cert); same != (jump == 2*day) {
					t.Errorf("the CA is the same: %t", same)
				}
				// One from the future is trusted on: to another API server it may be of the present.
				if jump < 0 && !s.trusts(old.current.cert) {
					t.Error("the CA from the future is not trusted")
				}
				if jump > 90*day && s.trusts(old.current.cert) {
					t.Error("the CA from the past is trusted")
				}
			})
		})
	}
}

// A month of nothing: the CA has expired, or is about to.
func TestAfterALongDowntimeAnExpiredCAIsReplacedAtOnce(t *testing.T) {
	for _, test := range []struct {
		down time.Duration
		same bool
	}{{20 * day, true}, {31 * day, false}, {400 * day, false}} {
		t.Run(fmt.Sprint(test.down), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				r := run(t, c, CALifetime(30*day))
				time.Sleep(start)
				old := c.state(t)
				r.stop()
				time.Sleep(test.down)
				if err := r.Check(nil); (err == nil) != test.same { // a certificate lives with its CA
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

func TestANextCATakesOverAtOnceWhereTheCurrentOneHasExpired(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		current := makeCA(t, c.now(), time.Hour)
		next, err := current.crossed(makeCA(t, c.now(), day))
		if err != nil {
			t.Fatal(err)
		}
		c.put(encoded(t, &state{current: current, next: next}))
		time.Sleep(2 * time.Hour)
		r := run(t, c)
		time.Sleep(time.Second)
		r.wantsWell(t, c)
		r.wantsIssuer(t, next.cert)
	})
}

func TestASmallDifferenceOfClocksIsIgnored(t *testing.T) {
	var c clock
	for _, step := range []struct{ set, want time.Duration }{
		{4 * time.Second, 0},
		{time.Minute, time.Minute},
		{time.Minute + 4*time.Second, time.Minute},
		{time.Minute + 5*time.Second, time.Minute + 5*time.Second},
		{-3 * time.Second, 0},
		{-tolerance, -tolerance},
	} {
		c.set(step.set)
		if got := time.Duration(c.offset.Load()); got != step.want {
			t.Errorf("after %s it is %s, not %s", step.set, got, step.want)
		}
	}
}

// An NTP server may be wrong for a while. What was made in that time must not be what is
// served afterwards.
func TestTheAPIServersClockMayJumpThereAndBack(t *testing.T) {
	for _, jump := range []time.Duration{13 * time.Hour, 2 * day, 44 * day, 60 * day, 365 * day, -2 * day} {
		for _, starting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a replica starts: %v", jump, starting), func(t *testing.T) {
				bubble(t, func(t *testing.T, c *cluster) {
					replicas := []*running{run(t, c, Interval(time.Minute)), run(t, c, Interval(time.Minute))}
					time.Sleep(time.Hour)
					c.offset.Store(int64(jump))
					if starting {
						replicas = append(replicas, run(t, c, Interval(time.Minute)))
					}
					time.Sleep(time.Hour)
					c.offset.Store(0)
					time.Sleep(3 * time.Minute)
					for _, r := range replicas {
						r.wantsWell(t, c)
					}
				})
			})
		}
	}
}

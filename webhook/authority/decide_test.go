package authority

import (
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

// Replicas that are faster than each other say nothing.
func TestLog_ConcurrentReplicas(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.latency = func() time.Duration { return 400 * time.Millisecond }
		var replicas []*running
		for range 10 {
			replicas = append(replicas, run(t, c))
		}
		time.Sleep(2 * start)
		c.delete()
		time.Sleep(2 * time.Minute)
		for _, r := range replicas {
			r.wantsWell(t, c)
			r.wantsErrors(t, 0)
		}
	})
}

// A deletion during a rotation keeps the next CA.
func TestDeletion_DuringRotation(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		started(t, c)
		c.delete()
		time.Sleep(time.Second)
		want := c.state(t).next.cert
		c.delete()
		time.Sleep(time.Second)
		if !c.state(t).next.cert.Equal(want) {
			t.Error("the next CA is another one")
		}
	})
}

// With many previous CAs, a deletion begins no rotation.
func TestDeletion_ManyPreviousCAs(t *testing.T) {
	for previous, rotates := range map[int]bool{maxPrevious - 1: true, maxPrevious: false} {
		bubble(t, func(t *testing.T, c *cluster) {
			c.put(encoded(t, makeState(t, time.Now(), previous)))
			started(t, c)
			c.delete()
			time.Sleep(time.Second)
			if got := c.state(t).next != nil; got != rotates {
				t.Errorf("with %d previous CAs it rotates: %t", previous, got)
			}
		})
	}
}

// A broken Secret with an expired CA gets a new one.
func TestBrokenSecret_ExpiredCA(t *testing.T) {
	for _, next := range []bool{true, false} {
		bubble(t, func(t *testing.T, c *cluster) {
			expiring := &state{current: makeCA(t, time.Now(), time.Hour)}
			if next {
				expiring.next = makeCA(t, time.Now(), time.Hour)
			}
			c.put(encoded(t, expiring))
			c.write(bundleKey, nil)
			if next {
				c.write(privateKey, nil)
			}
			time.Sleep(day)
			started(t, c).wantsWell(t, c)
		})
	}
}

// Each next CA settles for itself.
func TestIsPropagated_EachNextCA(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		a, err := New(c.config(), "ns", "ca", []string{"h"})
		expect.NoError(t, err)
		current := makeCA(t, time.Now(), day)
		for range 3 {
			s := &state{current: current, next: makeCA(t, time.Now(), day)}
			for i, want := range []bool{false, false, true} {
				if got := a.isPropagated(s); got != want {
					t.Errorf("after %d times 30 seconds: %t", i, got)
				}
				time.Sleep(30 * time.Second)
			}
		}
		s := &state{current: current, next: makeCA(t, time.Now(), day)}
		a.isPropagated(s)
		time.Sleep(time.Hour)
		a.isPropagated(&state{current: current}) // gone for a while
		if a.isPropagated(s) {
			t.Error("one that has come back has not settled")
		}
	})
}

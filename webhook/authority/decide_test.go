package authority

import (
	"testing"
	"time"
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
			if len(r.logged()) > 0 {
				t.Errorf("one logs %q", r.logged())
			}
		}
	})
}

// A deletion during a rotation keeps the next CA.
func TestDeletion_DuringRotation(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		run(t, c)
		time.Sleep(start)
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
			run(t, c)
			time.Sleep(start)
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
	bubble(t, func(t *testing.T, c *cluster) {
		data := encoded(t, &state{current: makeCA(t, time.Now(), time.Hour), next: makeCA(t, time.Now(), time.Hour)})
		delete(data, bundleKey)
		delete(data, privateKey)
		c.put(data)
		time.Sleep(day)
		r := run(t, c)
		time.Sleep(start)
		r.wantsWell(t, c)
	})
	bubble(t, func(t *testing.T, c *cluster) {
		data := encoded(t, &state{current: makeCA(t, time.Now(), time.Hour)})
		delete(data, bundleKey)
		c.put(data)
		time.Sleep(day)
		r := run(t, c)
		time.Sleep(start)
		r.wantsWell(t, c)
	})
}

// Each next CA settles for itself.
func TestIsPropagated_EachNextCA(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		a, err := New(c.config(), "ns", "ca", []string{"h"})
		if err != nil {
			t.Fatal(err)
		}
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

func TestLeaf_NotValidBeforeCA(t *testing.T) {
	now := time.Now()
	c := makeCA(t, now, day)
	leaf, err := c.leaf([]string{"h"}, now.Add(-30*time.Minute), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if !leaf.Leaf.NotBefore.Equal(c.cert.NotBefore) {
		t.Errorf("it is valid from %s, its CA from %s", leaf.Leaf.NotBefore, c.cert.NotBefore)
	}
}

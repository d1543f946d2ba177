package authority

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// A deleted Secret is back within a second, and rotates.
func TestDeletion_SecretIsBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		replicas := []*running{run(t, c), run(t, c), run(t, c)}
		time.Sleep(start)
		old := c.state(t)
		c.delete()
		time.Sleep(time.Second)
		s := c.state(t)
		if !s.current.cert.Equal(old.current.cert) || s.next == nil {
			t.Fatal("the CA is another one, or none follows")
		}
		time.Sleep(2 * time.Minute)
		promoted := c.state(t)
		if !promoted.current.cert.Equal(s.next.cert) || promoted.next != nil || !promoted.trusts(old.current.cert) {
			t.Error("the next CA has not taken over")
		}
		for _, r := range replicas {
			r.wantsWell(t, c)
			r.wantsIssuer(t, promoted.current.cert)
		}
		if n := c.written(); n != 3 {
			t.Errorf("the Secret was written %d times", n)
		}
	})
}

// Repeated deletions of the Secret cause one rotation.
func TestDeletion_AgainAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		for range 20 {
			c.delete()
			time.Sleep(time.Second)
		}
		if n := totals(r)[secretRecreated]; n != 20 {
			t.Errorf("%d deletions are counted", n)
		}
		if n := strings.Count(fmt.Sprint(r.lines()), `"reason"="SecretRecreated"`); n < 5 {
			t.Errorf("%d deletions are logged", n)
		}
		if n := len(c.state(t).trusted()); n != 2 {
			t.Errorf("there are %d CAs", n)
		}
		r.wantsWell(t, c)
	})
}

// A deletion while watches begin again is seen at once. A watch sees a deletion, but not one before
// it.
func TestDeletion_WhileWatchesBegin(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		run(t, c)
		time.Sleep(time.Hour)
		slow := make(chan struct{})
		c.mu.Lock()
		c.latency = func() time.Duration {
			select {
			case <-slow:
				return time.Millisecond
			default:
				return 20 * time.Millisecond
			}
		}
		c.mu.Unlock()
		c.endWatches()
		time.Sleep(10 * time.Millisecond)
		c.delete() // without a watch
		close(slow)
		time.Sleep(time.Second)
		c.state(t)
	})
}

// damage is the ways to break each value of the Secret.
var damage = map[string]func(value []byte) []byte{
	"is missing":   func([]byte) []byte { return nil },
	"is empty":     func([]byte) []byte { return []byte{} },
	"is garbage":   func([]byte) []byte { return []byte("garbage") },
	"is cut":       func(value []byte) []byte { return value[:len(value)/2] },
	"has too much": func(value []byte) []byte { return append(bytes.Clone(value), "and more"...) },
	"is huge":      func([]byte) []byte { return bytes.Repeat([]byte("A"), 256<<10) },
}

// Each broken part is restored with no new CA.
func TestBrokenSecret_EachPart(t *testing.T) {
	for _, key := range keys {
		for how, broken := range damage {
			bubble(t, func(t *testing.T, c *cluster) {
				current := makeCA(t, time.Now(), 90*day)
				next, err := current.crossed(makeCA(t, time.Now(), 90*day))
				expect.NoError(t, err)
				whole := encoded(t, &state{current: current, next: next, previous: makeState(t, time.Now(), 2).previous})
				c.put(whole)
				r := started(t, c, PropagationDelay(time.Hour))
				if c.written() != 0 {
					t.Fatal("what was whole has been written")
				}
				c.write(key, broken(whole[key]))
				time.Sleep(time.Second)
				if key == privateKey && how == "has too much" || key == nextKeyKey && how == "has too much" {
					return // it is still a key
				}
				want, got := maps.Clone(whole), c.snapshot()
				if key == nextCertKey || key == nextKeyKey {
					r.wantsWell(t, c)
				}
				if diff := cmp.Diff(text(want), text(got)); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", key, how, diff)
				}
				r.wantsWell(t, c)
			})
		}
	}
}

func text(data map[string][]byte) map[string]string {
	text := map[string]string{}
	for key, value := range data {
		text[key] = string(value)
	}
	return text
}

// makeState returns a state with previous CAs, from the oldest to the newest.
func makeState(t testing.TB, now time.Time, previous int) *state {
	t.Helper()
	s := &state{}
	for i := range previous {
		s.retire(makeCA(t, now.Add(time.Duration(i-previous)*time.Minute), 90*day).cert)
	}
	s.current = makeCA(t, now, 90*day)
	return s
}

// Data that is gone is restored, and others stay.
func TestBrokenSecret_DataGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		want := c.state(t)
		c.write("mine", []byte{0, 1, 2, 255})
		c.mu.Lock()
		c.kind = "example.com/of-somebody"
		c.meta = map[string]any{"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}}
		c.mu.Unlock()
		c.edit(func(data map[string][]byte) map[string][]byte {
			return map[string][]byte{"mine": data["mine"]}
		})
		time.Sleep(time.Second)
		s := c.state(t)
		if !s.current.cert.Equal(want.current.cert) || s.next != nil {
			t.Error("the CA has changed")
		}
		if diff := cmp.Diff([]byte{0, 1, 2, 255}, c.snapshot()["mine"]); diff != "" {
			t.Errorf("a foreign key (-want +got):\n%s", diff)
		}
		r.wantsWell(t, c)
		c.mu.Lock()
		defer c.mu.Unlock()
		if diff := cmp.Diff(map[string]any{"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}}, c.meta); diff != "" {
			t.Errorf("the metadata (-want +got):\n%s", diff)
		}
		if c.kind != "example.com/of-somebody" {
			t.Errorf("the type has become %s", c.kind)
		}
	})
}

// A Secret that is full is reported and served.
func TestSecret_WithoutRoom(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		const room = 32 << 10
		c.room = room
		r := started(t, c, Interval(time.Hour), CertificateLifetime(4*time.Hour))
		c.edit(func(data map[string][]byte) map[string][]byte {
			delete(data, bundleKey)
			data["large"] = make([]byte, room-100)
			return data
		})
		time.Sleep(5 * time.Hour)
		expect.NoError(t, r.Ready(nil))
		expect.ErrorContains(t, fmt.Errorf("%s", r.logged()), "writing the Secret: ", "422")
		c.write("large", nil)
		time.Sleep(10 * time.Minute)
		r.wantsWell(t, c)
	})
}

// An immutable Secret is reported and served.
func TestSecret_Immutable(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		opts := []Option{Interval(time.Hour), CALifetime(10 * day)}
		old := started(t, c, opts...)
		c.change(func() { c.immutable = true })
		time.Sleep(6 * day) // a rotation is due
		fresh := started(t, c, opts...)
		for _, r := range []*running{old, fresh} {
			r.wantsWell(t, c)
			expect.ErrorContains(t, fmt.Errorf("%s", r.logged()), "writing the Secret: ", "422")
			r.wantsErrors(t, 1)
		}
	})
}

// A replica that may not read any more renews its certificate.
func TestCertificate_ReplicaMayNotRead(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c, Interval(time.Hour), CALifetime(5*day))
		c.faulty(func(*http.Request) int { return 403 })
		c.endWatches()
		time.Sleep(3 * day)
		r.wantsWell(t, c)
		time.Sleep(3 * day) // the CA has expired
		expect.ErrorContains(t, r.Ready(nil), "authority: the certificate is valid from ", "the last read of Secret ns/ca: reading the Secret: ", "forbidden")
		c.faulty(nil)
		time.Sleep(10 * time.Minute)
		r.wantsWell(t, c)
	})
}

// A replica that starts alone saves what is whole. All replicas are down while parts of the Secret
// break.
func TestBrokenSecret_ReplicaStartsAlone(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble
	before := makeState(t, now, 1)
	older := makeCA(t, now, 90*day)
	current, err := older.crossed(before.current)
	expect.NoError(t, err)
	next, err := current.crossed(makeCA(t, now, 90*day))
	expect.NoError(t, err)
	whole := &state{current: current, next: next, previous: append(before.previous, older.cert)}
	for how, damaged := range damage {
		for _, key := range keys {
			t.Run(key+" "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T, c *cluster) {
					data := encoded(t, whole)
					if data[key] = damaged(data[key]); data[key] == nil {
						delete(data, key)
					}
					c.put(data)
					r := started(t, c, PropagationDelay(time.Hour))
					expect.NoError(t, r.Ready(nil))
					leaf, _ := r.GetCertificate(nil)
					issuer := current.cert
					if bytes.Contains([]byte(how), []byte("too much")) {
						// The first certificate is whole, and the key.
					} else if key == privateKey || key == certKey && how != "is cut" {
						issuer = next.cert
					}
					if err := leaf.Leaf.CheckSignatureFrom(issuer); err != nil {
						t.Errorf("it serves with another CA than could be saved: %v", err)
					}
					time.Sleep(20 * time.Second)
					r.wantsWell(t, c)
					for _, cert := range whole.previous {
						if key != previousKey && !c.state(t).trusts(cert) {
							t.Errorf("%s is not trusted any more", cert.Subject)
						}
					}
					if key != previousKey && issuer == current.cert && key != nextCertKey && key != nextKeyKey && !c.state(t).trusts(next.cert) {
						t.Error("the next CA is lost")
					}
				})
			})
		}
	}
}

// One previous CA that is broken loses no other before it.
func TestBrokenSecret_OnePreviousCA(t *testing.T) {
	s := makeState(t, time.Now(), 2)
	data := encoded(t, s)
	data[previousKey] = append(data[previousKey], "-----BEGIN"...)
	got, err := parseState(data)
	expect.ErrorContains(t, err, previousKey)
	if len(got.previous) != 2 {
		t.Errorf("there are %d previous CAs left", len(got.previous))
	}
}

// A new replica waits for one that remembers.
func TestBrokenSecret_NewReplicaWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		old := started(t, c)
		want := c.state(t).current.cert
		c.change(func() { c.latency = func() time.Duration { return time.Second } }) // it reaches the API server a second later
		c.delete()
		fresh := run(t, c)
		time.Sleep(6 * time.Second)
		for _, r := range []*running{old, fresh} {
			r.wantsWell(t, c)
			r.wantsIssuer(t, want)
		}
	})
}

// A replica with an old memory restores a Secret that is gone. After hours without the API server
// the Secret counts for more than what is remembered; but without a Secret, or with a broken one,
// the replica has only its memory.
func TestMemory_OldAndSecretGone(t *testing.T) {
	for name, broken := range map[string]map[string][]byte{"gone": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				r := started(t, c)
				want := c.state(t).current.cert
				c.away()
				time.Sleep(time.Hour)
				c.edit(func(map[string][]byte) map[string][]byte { return maps.Clone(broken) })
				c.faulty(nil)
				time.Sleep(20 * time.Second)
				r.wantsWell(t, c)
				r.wantsIssuer(t, want)
			})
		})
	}
}

// After hours away, the Secret counts for more than memory.
func TestMemory_AfterHoursAway(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		other := &state{current: makeCA(t, time.Now(), 90*day)}
		c.away()
		time.Sleep(time.Hour)
		c.put(encoded(t, other))
		c.faulty(nil)
		time.Sleep(start)
		r.wantsWell(t, c)
		r.wantsIssuer(t, other.current.cert)
		if c.state(t).next != nil {
			t.Error("there is a next CA")
		}
	})
}

// A replica that was stopped after it had asked for the Secret, and before it could read the answer, does not restore a CA that
// was removed meanwhile. It knows by the wall clock, because the monotonic clock stands still while a machine is suspended.
func TestMemory_ReplicaStopped(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var stop atomic.Bool
		config := c.config()
		config.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := c.roundTrip(r)
			if r.Method == http.MethodGet && r.URL.Query().Get("watch") == "" && stop.CompareAndSwap(true, false) {
				time.Sleep(time.Hour)
			}
			return resp, err
		})
		r := runIn(t, config, "ns")
		time.Sleep(start)
		stop.Store(true)
		time.Sleep(30 * time.Minute)
		other := &state{current: makeCA(t, time.Now(), 90*day)}
		c.put(encoded(t, other))
		time.Sleep(time.Hour)
		r.wantsWell(t, c)
		r.wantsIssuer(t, other.current.cert)
		if c.state(t).next != nil || len(c.state(t).previous) > 0 {
			t.Error("the CA that was removed is trusted again")
		}
		if r.lastRead != r.lastRead.Round(0) {
			t.Error("the time of the last read is not that of the wall clock")
		}
	})
}

// An answer that is lost does not matter.
func TestAuthority_LostAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		n := 0
		c.lost = func(r *http.Request) bool {
			if r.Method != http.MethodGet {
				n++
			}
			return r.Method != http.MethodGet && n == 1
		}
		replicas := []*running{run(t, c), run(t, c)}
		time.Sleep(start)
		for _, r := range replicas {
			r.wantsWell(t, c)
		}
		if c.written() != 1 || len(c.state(t).trusted()) != 1 {
			t.Errorf("after %d writes there are %d CAs", c.written(), len(c.state(t).trusted()))
		}
	})
}

// Another client undoes each write, such as a controller that owns the Secret.
func TestSecret_FightHasLimit(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		want := c.state(t).current.cert
		before := c.written()
		c.mu.Lock()
		c.lost = func(r *http.Request) bool {
			if r.Method == http.MethodPut {
				time.AfterFunc(2*time.Millisecond, func() {
					c.write(bundleKey, nil)
				})
			}
			return false
		}
		c.mu.Unlock()
		c.write(bundleKey, nil)
		time.Sleep(time.Minute)
		if n := c.written() - before; n > 400 || n < 4 {
			t.Errorf("there were %d writes in a minute", n)
		}
		expect.NoError(t, r.Ready(nil))
		r.wantsIssuer(t, want)
	})
}

func TestState_PKCS8Key(t *testing.T) {
	if !strings.HasPrefix(string(encoded(t, makeState(t, time.Now(), 0))[privateKey]), "-----BEGIN PRIVATE KEY-----") {
		t.Error("the key is not PKCS #8")
	}
}

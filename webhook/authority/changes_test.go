package authority

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/expect"
)

// totals adds up the changes of replicas by their reasons.
func totals(replicas ...*running) map[string]int {
	all := map[string]int{}
	for _, r := range replicas {
		r.Changes(func(_, _, reason string, total int) {
			if total > 0 {
				all[reason] += total
			}
		})
	}
	return all
}

// eventReasons returns the types and reasons of the Events.
func (c *cluster) eventReasons(t *testing.T) (all []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Namespace != "ns" || e.InvolvedObject.Name != "ca" || e.InvolvedObject.UID != "the-uid" || e.ReportingController != fieldManager {
			t.Errorf("the Event is %+v", e)
		}
		all = append(all, e.Type+" "+e.Reason)
	}
	slices.Sort(all) // they are created concurrently
	return all
}

// Each change is reported by the replica that makes it: with a line, an Event and a count.
func TestChanges_RotationAndRepair(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		opts := []Option{Interval(time.Hour), CALifetime(10 * day)}
		replicas := []*running{run(t, c, opts...), run(t, c, opts...)}
		time.Sleep(start)
		late := started(t, c, opts...)
		if lines := late.lines(); len(lines) != 1 || !strings.Contains(lines[0], "Using the CA in the Secret") {
			t.Errorf("a replica that starts logs %q", lines)
		}
		replicas = append(replicas, late)
		want := map[string]int{caCreated: 1}
		wantTotals := func(after string, more ...string) {
			t.Helper()
			for _, reason := range more {
				want[reason]++
			}
			if diff := cmp.Diff(want, totals(replicas...)); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", after, diff)
			}
			var got []string
			for _, r := range replicas {
				got = append(got, r.logged()...)
			}
			if n := want[secretRepaired]; len(got) != n {
				t.Errorf("after %s, there are %d errors, want %d: %q", after, len(got), n, got)
			}
		}
		wantTotals("the start")
		c.delete()
		time.Sleep(10 * time.Second)
		wantTotals("a deletion", secretRecreated, caRotationStarted)
		time.Sleep(15 * time.Minute) // a replica looks again after up to a tenth of the interval
		wantTotals("the rotation", caRotated)
		c.write(privateKey, []byte("garbage"))
		time.Sleep(10 * time.Second)
		wantTotals("garbage", secretRepaired)
		backup := c.snapshot()
		time.Sleep(5*day + 3*time.Hour)
		wantTotals("half of the lifetime", caRotationStarted, caRotated)
		c.put(backup)
		time.Sleep(10 * time.Second)
		wantTotals("an old backup", secretRepaired)
		time.Sleep(5*day + 6*time.Hour)
		// They end seconds apart, and a replica may look in between.
		if want[caRemoved] = totals(replicas...)[caRemoved]; want[caRemoved] < 1 || want[caRemoved] > 2 {
			t.Errorf("CAs were removed %d times", want[caRemoved])
		}
		wantTotals("the end of the first two CAs", caRotationStarted, caRotated)
		events, sum := c.eventReasons(t), 0
		for _, n := range want {
			sum += n
		}
		if len(events) != sum {
			t.Errorf("%d Events for %d changes", len(events), sum)
		}
		if diff := cmp.Diff([]string{
			"Normal CACreated", "Normal CARemoved", "Normal CARotated", "Normal CARotationStarted", "Normal SecretRecreated", "Warning SecretRepaired",
		}, slices.Compact(events)); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
}

// A CA that no replica has signed is trusted, and reported as an error.
func TestUnknownCA_Planted(t *testing.T) {
	for key, plant := range map[string]func(s *state, ca *ca){
		certKey:     func(s *state, ca *ca) { s.current = ca },
		nextCertKey: func(s *state, ca *ca) { s.next = ca },
		previousKey: func(s *state, ca *ca) { s.retire(ca.cert) },
	} {
		t.Run(key, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				replicas := []*running{run(t, c), run(t, c)}
				time.Sleep(start)
				s, planted := c.state(t), makeCA(t, time.Now(), 90*day)
				plant(s, planted)
				c.put(encoded(t, s))
				time.Sleep(2 * time.Minute)
				if !c.state(t).trusts(planted.cert) {
					t.Fatal("the CA is not trusted")
				}
				if n := totals(replicas...)[unknownCA]; n < 1 || n > 2 {
					t.Errorf("it was reported %d times", n)
				}
				reported := replicas[0]
				if totals(reported)[unknownCA] == 0 {
					reported = replicas[1]
				}
				want := regexp.MustCompile(`"error"=.*"reason"="UnknownCA".*` + fingerprint(planted.cert) + `.*"fieldManagers"`)
				if !slices.ContainsFunc(reported.lines(), want.MatchString) {
					t.Errorf("no line is like %s: %q", want, reported.lines())
				}
				if events := c.eventReasons(t); !strings.Contains(fmt.Sprint(events), "Warning UnknownCA") {
					t.Errorf("the Events are %q", events)
				}
				fresh := started(t, c)
				fresh.wantsErrors(t, 0)
			})
		})
	}
}

// A replica that missed a rotation of others knows by the cross certificates that it was theirs.
func TestUnknownCA_MissedRotation(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		opts := []Option{Interval(time.Hour), CALifetime(10 * day)}
		other := started(t, c, opts...)
		r := run(t, c, opts...)
		time.Sleep(start)
		before := c.state(t)
		r.stop()
		memory := r.known()
		time.Sleep(6 * day)
		after := c.state(t)
		if after.current.cert.Equal(before.current.cert) {
			t.Fatal("there was no rotation")
		}
		for _, s := range []step{{known: memory, theirs: after, wants: after}, {known: memory, mine: memory, theirs: after, wants: after}} {
			if got := s.unknown(); len(got) > 0 {
				t.Errorf("unknown: %v", got)
			}
		}
		if totals(other)[unknownCA] > 0 {
			t.Error("the other replica does not know its own CA")
		}
	})
}

// A replica replaces an expired CA, and the others know that it was one of them.
func TestUnknownCA_ExpiredCAReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		opts := []Option{Interval(time.Hour), CALifetime(10 * time.Hour)}
		replicas := []*running{run(t, c, opts...), run(t, c, opts...), run(t, c, opts...)}
		time.Sleep(start)
		c.away()
		time.Sleep(11 * time.Hour) // reads that fail are retried every five seconds
		c.faulty(nil)
		time.Sleep(2 * time.Hour)
		want := map[string]int{caCreated: 2, caRemoved: 1}
		if diff := cmp.Diff(want, totals(replicas...)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, r := range replicas {
			r.wantsWell(t, c)
		}
	})
}

// Without the permission to create Events, a replica works, and says so once.
func TestChanges_WithoutEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.faulty(func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/events") {
				return 403
			}
			return 0
		})
		r := started(t, c)
		for range 5 {
			c.delete()
			time.Sleep(time.Second)
		}
		r.wantsWell(t, c)
		if n := strings.Count(fmt.Sprint(r.lines()), "Cannot create an Event"); n != 1 {
			t.Errorf("it says so %d times: %q", n, r.lines())
		}
	})
}

// A fight over the Secret fills neither the log nor the API server.
func TestChanges_FightHasLimit(t *testing.T) {
	for reason, edit := range map[string]func(t *testing.T, data map[string][]byte) map[string][]byte{
		secretRepaired: func(_ *testing.T, data map[string][]byte) map[string][]byte {
			delete(data, bundleKey)
			return data
		},
		unknownCA: func(t *testing.T, _ map[string][]byte) map[string][]byte {
			return encoded(t, &state{current: makeCA(t, time.Now(), 90*day)})
		},
	} {
		t.Run(reason, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				replicas := []*running{run(t, c), run(t, c)}
				time.Sleep(start)
				for range 330 {
					c.edit(func(data map[string][]byte) map[string][]byte { return edit(t, data) })
					time.Sleep(time.Second)
				}
				if n := totals(replicas...)[reason]; n < 50 {
					t.Errorf("there are %d changes", n)
				}
				for _, r := range replicas {
					if n := len(r.lines()); n > 75 {
						t.Errorf("there are %d lines", n)
					}
				}
				if n := len(c.eventReasons(t)); n > 90 {
					t.Errorf("there are %d Events", n)
				}
				if !strings.Contains(fmt.Sprint(replicas[0].lines(), replicas[1].lines()), `"times"=`) {
					t.Error("no line has the number of repetitions")
				}
			})
		})
	}
}

// Even at the highest verbosity, at which client-go logs the bodies of requests, the CA's key is not in the log.
func TestLog_NoPrivateKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var mu sync.Mutex
		var log strings.Builder
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			log.WriteString(args)
		}, funcr.Options{Verbosity: 10})))
		a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"})
		expect.NoError(t, err)
		done := make(chan error)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(start)
		c.write(bundleKey, nil)
		time.Sleep(start)
		cancel()
		expect.NoError(t, <-done)
		if text := log.String(); !strings.Contains(text, secretRepaired) || strings.Contains(text, base64.StdEncoding.EncodeToString(c.snapshot()[privateKey])) {
			t.Errorf("the log has the key, or lacks the repair: %s", text)
		}
	})
}

package authority

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/crdkit/crdkit/test/expect"
)

// While the API server is away, the certificate is served and renewed.
func TestAuthority_APIServerAway(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c, Interval(5*time.Minute), CertificateLifetime(30*time.Minute), CALifetime(4*time.Hour))
		want := c.state(t).current.cert
		c.away()
		time.Sleep(time.Hour) // longer than the certificate's life
		r.wantsWell(t, c)
		r.wantsIssuer(t, want)
		time.Sleep(4 * time.Hour) // longer than the CA's
		expect.ErrorContains(t, r.Ready(nil), "authority: the certificate is valid from ", "reading the Secret", "500")
		c.faulty(nil)
		time.Sleep(time.Minute)
		r.wantsWell(t, c)
		if c.state(t).current.cert.Equal(want) {
			t.Error("the CA is the expired one")
		}
	})
}

// A certificate does not expire during a request that hangs.
func TestCertificate_RequestHangs(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c, Interval(5*time.Second), CertificateLifetime(20*time.Second))
		c.change(func() { c.latency = func() time.Duration { return time.Hour } })
		for range 120 {
			time.Sleep(time.Second)
			r.wantsWell(t, c)
		}
	})
}

// Check says that a certificate has expired, though nothing failed.
func TestCheck_ExpiredCertificate(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		r.stop()
		time.Sleep(90 * day) // the CA's life
		err := r.Ready(nil)
		expect.ErrorContains(t, err, "authority: the certificate is valid from 1999-12-31T23:00:0", "to 2000-01-02T00:00:0", "and it is 2000-03-31T00:00:1")
		if strings.Contains(err.Error(), "%!") || strings.Contains(err.Error(), "look") {
			t.Error(err)
		}
	})
}

// An API server that is away does not flood the log.
func TestLog_APIServerAway(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c)
		c.away()
		time.Sleep(10 * time.Minute)
		r.wantsErrors(t, 2) // what cannot be read, and cannot be watched
		c.faulty(nil)
		time.Sleep(5 * time.Minute)
		c.away() // again: that is worth a line
		time.Sleep(10 * time.Minute)
		r.wantsErrors(t, 4)
	})
}

// Errors that differ each time, such as in the port of a connection, are logged once a minute.
func TestLog_ErrorsThatDiffer(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		config, ports := c.config(), atomic.Int64{}
		config.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			port := ports.Add(1)
			if port%3 == 0 && r.Method == http.MethodGet && r.URL.Query().Get("watch") == "" {
				return c.roundTrip(r)
			}
			return nil, fmt.Errorf("port %d: %w", port, io.ErrUnexpectedEOF)
		})
		r := runIn(t, config, "ns")
		time.Sleep(10 * time.Minute)
		if n := len(r.logged()); n < 10 || n > 22 {
			t.Errorf("it logs %d times in ten minutes", n)
		}
	})
}

// A missing watch is logged, and changes are seen later.
func TestWatch_Missing(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.faulty(func(r *http.Request) int {
			if r.URL.Query().Get("watch") != "" {
				return 403
			}
			return 0
		})
		r := run(t, c)
		time.Sleep(time.Minute)
		expect.ErrorContains(t, fmt.Errorf("%s", r.logged()), "Cannot watch", "forbidden", `"name"="ca" "namespace"="ns"`)
		r.wantsErrors(t, 1)
		c.delete()
		time.Sleep(17 * time.Second)
		r.wantsWell(t, c)
	})
}

// A watch that ended begins again soon, even if the interval is long.
func TestWatch_LongInterval(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := started(t, c, Interval(10*time.Minute))
		c.endWatches()
		time.Sleep(6 * time.Second)
		c.delete()
		time.Sleep(time.Second)
		r.wantsWell(t, c)
	})
}

// An idle authority reads once per interval. As many requests as necessary.
func TestAuthority_Idle(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		run(t, c)
		time.Sleep(time.Hour)
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := c.reads; n < 660 || n > 800 { // 720 intervals of 5 seconds, 6 watches
			t.Errorf("there were %d reads in an hour", n)
		}
	})
}

// An API server that takes many seconds is waited for.
func TestAuthority_SlowAPIServer(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.latency = func() time.Duration { return 12 * time.Second }
		r := run(t, c)
		time.Sleep(2 * time.Minute)
		r.wantsWell(t, c)
		r.wantsErrors(t, 0)
	})
}

// Requests that fail for hours, for example without the permission, do not load the API server.
func TestAuthority_FailuresAreRare(t *testing.T) {
	for name, fails := range map[string]func(*http.Request) bool{
		"all":    func(*http.Request) bool { return true },
		"reads":  func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Query().Get("watch") == "" },
		"writes": func(r *http.Request) bool { return r.Method != http.MethodGet },
	} {
		for _, interval := range []time.Duration{5 * time.Second, 10 * time.Minute} {
			t.Run(fmt.Sprint(name, " every ", interval), func(t *testing.T) {
				bubble(t, func(t *testing.T, c *cluster) {
					failed := 0
					c.faulty(func(r *http.Request) int {
						if !fails(r) {
							return 0
						}
						failed++
						return 403
					})
					r := run(t, c, Interval(interval))
					time.Sleep(time.Hour)
					c.change(func() {
						if failed > 2*3600/5+20 {
							t.Errorf("%d requests failed in an hour", failed)
						}
					})
					c.faulty(nil)
					time.Sleep(start + 6*time.Second)
					r.wantsWell(t, c)
				})
			})
		}
	}
}

// A replica whose clock is wrong writes no CA, which no API server would accept, and which the others would replace.
func TestClock_Wrong(t *testing.T) {
	for _, ahead := range []time.Duration{100 * day, -100 * day} {
		bubble(t, func(t *testing.T, c *cluster) {
			c.put(encoded(t, &state{current: makeCA(t, time.Now().Add(-ahead), 90*day)}))
			c.change(func() { c.behind = ahead })
			r := started(t, c)
			time.Sleep(time.Hour)
			if n := c.written(); n > 0 {
				t.Errorf("there were %d writes", n)
			}
			r.wantsErrors(t, 1)
			want := fmt.Sprintf("the clock of this replica differs from the API server's by %s, expected at most 1h0m0s", ahead)
			expect.ErrorContains(t, r.Ready(nil), "no certificate yet: writing the Secret: ", want)
			c.change(func() { c.behind = 0 })
			time.Sleep(start)
			r.wantsWell(t, c)
		})
	}
}

// afterSuspend returns what the clock shows when the machine was suspended for a while at a time: its wall clock goes on,
// and its monotonic clock has stopped.
func afterSuspend(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	after := at
	*(*uint64)(unsafe.Pointer(&after)) += uint64(d/time.Second) << 30 // the seconds of time.Time.wall
	if after.Sub(at) != 0 || after.Round(0).Sub(at) != d {
		t.Fatalf("%s after a suspend of %s: %s", at, d, after)
	}
	return after
}

// A machine that was suspended for days has a valid certificate at once. A bubble has no monotonic clock.
func TestCertificate_MachineSuspended(t *testing.T) {
	a, err := New(newCluster().config(), "ns", "ca", []string{"h"})
	expect.NoError(t, err)
	now := time.Now()
	expect.NoError(t, a.adopt(&state{current: makeCA(t, now, 90*day)}, now))
	now = afterSuspend(t, now, 3*day)
	expect.NoError(t, a.renew(now))
	if !valid(a.leaf.Leaf, now) {
		t.Errorf("at %s, the certificate has expired at %s", now, a.leaf.Leaf.NotAfter)
	}
}

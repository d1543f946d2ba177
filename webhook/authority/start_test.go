package authority

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/crdkit/crdkit/test/expect"
)

// The first replica makes a CA and serves with it.
func TestStart_FirstReplica(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := run(t, c)
		if bundle := r.CABundle(); bundle != nil {
			t.Errorf("before there is a CA, the bundle is %q", bundle)
		}
		time.Sleep(start)
		r.wantsWell(t, c)
		r.wantsIssuer(t, c.state(t).current.cert)
		c.change(func() {
			if c.kind != "kubernetes.io/tls" {
				t.Errorf("the Secret's type is %s", c.kind)
			}
		})
		if n := c.written(); n != 1 {
			t.Errorf("the Secret was written %d times", n)
		}
		r.wantsErrors(t, 0)
	})
}

// Replicas that start at once agree on one CA.
func TestStart_ConcurrentReplicas(t *testing.T) {
	for _, n := range []int{2, 10} {
		bubble(t, func(t *testing.T, c *cluster) {
			var replicas []*running
			for range n {
				replicas = append(replicas, run(t, c))
			}
			time.Sleep(start)
			s := c.state(t)
			for _, r := range replicas {
				r.wantsWell(t, c)
				r.wantsIssuer(t, s.current.cert)
			}
			if s.next != nil || len(s.previous) > 0 || c.written() != 1 {
				t.Errorf("there are more CAs than one, after %d writes: %d", c.written(), len(s.trusted()))
			}
		})
	}
}

// A replica that starts later serves at once with the CA that is there.
func TestStart_LaterReplica(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		run(t, c)
		time.Sleep(time.Hour)
		want := c.state(t).current.cert
		r := run(t, c)
		time.Sleep(50 * time.Millisecond)
		r.wantsWell(t, c)
		r.wantsIssuer(t, want)
		if n := c.written(); n != 1 {
			t.Errorf("the Secret was written %d times", n)
		}
	})
}

// An empty Secret of another owner is filled.
func TestStart_EmptySecret(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(map[string][]byte{})
		c.kind = "Opaque" // the API server wants two keys in a kubernetes.io/tls
		r := started(t, c)
		r.wantsWell(t, c)
		c.change(func() {
			if c.kind != "Opaque" {
				t.Errorf("the type has become %s", c.kind)
			}
		})
	})
}

// Nothing is served before the first read, and the error says why.
func TestStart_BeforeFirstRead(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"})
		expect.NoError(t, err)
		_, err = a.GetCertificate(nil)
		want := "authority: Secret ns/ca: no certificate yet: the Secret has not been read"
		expect.ErrorContains(t, err, want)
		expect.ErrorContains(t, a.Ready(nil), want)

		c.faulty(func(*http.Request) int { return 403 })
		r := started(t, c)
		for _, err := range []error{r.Ready(nil), func() error { _, err := r.GetCertificate(nil); return err }()} {
			expect.ErrorContains(t, err, "Secret ns/ca: no certificate yet: reading the Secret: ", `secrets "ca" is forbidden: User "pizza"`)
		}
		c.faulty(nil)
		time.Sleep(start)
		r.wantsWell(t, c)
	})
}

// While a replica waits for others, the error says so.
func TestStart_WaitsForOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := run(t, c)
		time.Sleep(3 * time.Second)
		expect.ErrorContains(t, r.Ready(nil), "another replica may restore it")
		if c.written() != 0 {
			t.Error("it has not waited")
		}
	})
}

func TestNew_NamesAllFaults(t *testing.T) {
	_, err := New(&rest.Config{Host: "https://cluster"}, "Name space", "Se cret", nil,
		CALifetime(time.Minute), RotateAfter(-1), PropagationDelay(-1))
	expect.ErrorContains(t, err, "authority: ", `namespace "Name space"`, `name "Se cret"`, "no hosts", "RotateAfter -1ns", "PropagationDelay -1ns")

	for name, test := range map[string]struct {
		hosts []string
		opts  []Option
		want  []string
	}{
		"hosts": {
			hosts: []string{"good.example.com", "10.0.0.1", "::1", "bad host", "*.example.com", "https://example.com"},
			want:  []string{`host "bad host", expected a DNS name or an IP address`, `host "*.example.com"`, `host "https://example.com"`},
		},
		"a CA that cannot be replaced in time": {
			hosts: []string{"h"}, opts: []Option{CALifetime(time.Hour), RotateAfter(59 * time.Minute)},
			want: []string{"RotateAfter 59m0s with CALifetime 1h0m0s"},
		},
		"a CA that does not live": {
			hosts: []string{"h"}, opts: []Option{CALifetime(0)},
			want: []string{"CALifetime 0s, RotateAfter 0s", "RotateAfter 0s with CALifetime 0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(&rest.Config{Host: "https://cluster"}, "ns", "ca", test.hosts, test.opts...)
			expect.ErrorContains(t, err, test.want...)
			if got := strings.Count(err.Error(), "\n") + 1; got != len(test.want) {
				t.Errorf("there are %d faults, not %d: %v", got, len(test.want), err)
			}
		})
	}
	expect.ErrorContains(t, func() error {
		_, err := New(&rest.Config{Host: "://"}, "ns", "ca", []string{"h"})
		return err
	}(), "authority: ")
	if _, err := New(&rest.Config{Host: "https://cluster"}, "ns", "ca", []string{"h"}, CertificateLifetime(time.Minute), PropagationDelay(0), CALifetime(2*time.Minute)); err != nil {
		t.Errorf("the shortest times: %v", err)
	}
}

func TestNew_KeepsNoArguments(t *testing.T) {
	config := newCluster().config()
	config.QPS = 3
	hosts := []string{"pizza.ns.svc"}
	a, err := New(config, "ns", "ca", hosts)
	expect.NoError(t, err)
	hosts[0] = "other"
	if diff := cmp.Diff([]string{"pizza.ns.svc"}, a.hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if config.QPS != 3 {
		t.Error("the configuration has changed")
	}
}

// No goroutine is left after Run, whenever it stops. A bubble of synctest ends with a panic if a
// goroutine in it is blocked forever, so each test here shows it; this one for a Run that is
// stopped in the middle of things.
func TestRun_LeavesNoGoroutine(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond, 6*time.Second + time.Millisecond, start, time.Hour} {
		bubble(t, func(t *testing.T, c *cluster) {
			c.latency = func() time.Duration { return 300 * time.Millisecond }
			a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"})
			expect.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			begin := time.Now()
			expect.NoError(t, a.Run(ctx))
			if took := time.Since(begin); took != after {
				t.Errorf("Run ended after %s, not %s", took, after)
			}
		})
	}
}

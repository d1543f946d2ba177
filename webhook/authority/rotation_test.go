package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// registrations is what the API servers have been told to trust. Each of them learns of a
// change a while later.
type registrations struct {
	mu      sync.Mutex
	changes []registered
	lags    []time.Duration
}

type registered struct {
	at     time.Time
	bundle []byte
}

func (r *registrations) write(bundle []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, registered{time.Now(), bundle})
}

// carry says whether all certificates of a bundle are registered.
func (r *registrations) carry(bundle []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changes) == 0 {
		return errors.New("nothing is registered")
	}
	have, err := parseCertificates(r.changes[len(r.changes)-1].bundle)
	if err != nil {
		return err
	}
	want, err := parseCertificates(bundle)
	if err != nil {
		return err
	}
	for _, cert := range want {
		if !slices.ContainsFunc(have, cert.Equal) {
			return fmt.Errorf("%s is not registered", cert.Subject)
		}
	}
	return nil
}

// views returns what each API server trusts now; nil before it knows of anything.
func (r *registrations) views() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	views := make([][]byte, len(r.lags))
	for i, lag := range r.lags {
		for _, change := range r.changes {
			if time.Since(change.at) >= lag {
				views[i] = change.bundle
			}
		}
	}
	return views
}

// replica is one of several that share a Secret.
type replica struct {
	*Authority
	stop func()
}

func startReplica(t testing.TB, c *cluster, r *registrations, opts ...Option) *replica {
	t.Helper()
	a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"}, append([]Option{
		CALifetime(60 * time.Second), RotateAfter(15 * time.Second), CertificateLifetime(8 * time.Second),
		Interval(time.Second), Settle(2 * time.Second), CarriedBy(r.carry),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { // what package registration does
		for {
			bundle, changed := a.CABundle()
			if bundle != nil && sleep(ctx, rand.N(300*time.Millisecond)) == nil {
				if bundle, _ := a.CABundle(); r.carry(bundle) != nil || len(bundle) > 0 {
					r.write(bundle)
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return &replica{a, func() { cancel(); wg.Wait() }}
}

// trusted returns an error if a replica has a certificate that an API server would not
// take. strict asks for the issuer in what it trusts; without, a cross certificate will do.
func (rep *replica) trusted(view []byte, now time.Time, strict bool) error {
	chain, err := rep.GetCertificate(nil)
	if err != nil {
		return err
	}
	certs, err := parseCertificates(view)
	if err != nil {
		return err
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, cert := range certs {
		roots.AddCert(cert)
	}
	for _, der := range chain.Certificate[1:] {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		if !strict {
			intermediates.AddCert(cert)
		}
	}
	_, err = chain.Leaf.Verify(x509.VerifyOptions{DNSName: "pizza.ns.svc", Roots: roots, Intermediates: intermediates, CurrentTime: now})
	return err
}

// TestNoAPIServerEverMeetsACertificateThatItDoesNotTrust plays ten minutes of three replicas
// of which one is always there, with everything that can happen to them and to the Secret,
// six times over.
func TestNoAPIServerEverMeetsACertificateThatItDoesNotTrust(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playRotation(t, seed) })
		})
	}
}

func playRotation(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCluster()
	c.offset = time.Duration(random.IntN(3)-1) * 40 * 24 * time.Hour // everybody's clock is wrong
	c.latency = func() time.Duration { return rand.N(50 * time.Millisecond) }
	r := &registrations{lags: []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}}
	replicas := []*replica{startReplica(t, c, r), startReplica(t, c, r), startReplica(t, c, r)}
	defer func() {
		for _, rep := range replicas {
			if rep != nil {
				rep.stop()
			}
		}
	}()
	time.Sleep(10 * time.Second)

	var log []string
	type verification struct {
		leaf *tls.Certificate
		view string
	}
	verified := map[verification]bool{}
	rotations, last := 0, []byte(nil)
	next := time.Now()
	for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(50 * time.Millisecond) {
		for i, rep := range replicas {
			if rep == nil {
				continue
			}
			leaf, err := rep.GetCertificate(nil)
			if err != nil {
				continue // it has just started
			}
			for _, view := range r.views() {
				// The same chain and bundle get the same answer, while the chain lasts.
				seen := verification{leaf, string(view)}
				if verified[seen] && c.now().Before(leaf.Leaf.NotAfter) {
					continue
				}
				verified[seen] = true
				if err := rep.trusted(view, c.now(), true); err != nil {
					t.Fatalf("after %s, replica %d: %v\n%q", time.Since(begin), i, err, log[max(0, len(log)-10):])
				}
			}
		}
		c.mu.Lock()
		if cert := c.data[certKey]; cert != nil && !bytes.Equal(cert, last) {
			rotations, last = rotations+1, cert
		}
		c.mu.Unlock()
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(time.Duration(random.IntN(8000)) * time.Millisecond)
		event := mishaps[random.IntN(len(mishaps))]
		log = append(log, fmt.Sprintf("%s: %s", time.Since(begin), event.name))
		event.happens(t, random, c, r, replicas)
	}
	if rotations < 15 {
		t.Errorf("there were %d rotations in ten minutes", rotations)
	}
}

var mishaps = []struct {
	name    string
	happens func(t *testing.T, random *rand.Rand, c *cluster, r *registrations, replicas []*replica)
}{
	{"nothing", func(*testing.T, *rand.Rand, *cluster, *registrations, []*replica) {}},
	{"a replica is killed, or starts", func(t *testing.T, random *rand.Rand, c *cluster, r *registrations, replicas []*replica) {
		i := 1 + random.IntN(len(replicas)-1) // the first one lives
		if replicas[i] == nil {
			replicas[i] = startReplica(t, c, r)
			return
		}
		replicas[i].stop()
		replicas[i] = nil
	}},
	{"the Secret is deleted while a replica starts", func(t *testing.T, random *rand.Rand, c *cluster, r *registrations, replicas []*replica) {
		i := 1 + random.IntN(len(replicas)-1)
		if replicas[i] != nil {
			replicas[i].stop()
		}
		c.edit(func(map[string][]byte) map[string][]byte { return nil })
		replicas[i] = startReplica(t, c, r)
	}},
	{"the Secret is deleted", func(_ *testing.T, _ *rand.Rand, c *cluster, _ *registrations, _ []*replica) {
		c.edit(func(map[string][]byte) map[string][]byte { return nil })
	}},
	{"a value is corrupted", func(_ *testing.T, random *rand.Rand, c *cluster, _ *registrations, _ []*replica) {
		c.edit(func(data map[string][]byte) map[string][]byte {
			for _, key := range []string{bundleKey, certKey, privateKey, nextCertKey, nextKeyKey, previousKey} {
				if value := data[key]; len(value) > 0 && random.IntN(3) == 0 {
					switch random.IntN(3) {
					case 0:
						delete(data, key)
					case 1:
						data[key] = []byte("garbage")
					case 2:
						data[key] = append([]byte(nil), value...)
						data[key][random.IntN(len(value))] ^= 0x10
					}
				}
			}
			return data
		})
	}},
	{"somebody puts another CA there", func(t *testing.T, _ *rand.Rand, c *cluster, _ *registrations, _ []*replica) {
		other, err := newCA("foreign", c.now(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		data, err := (&state{current: other}).encode()
		if err != nil {
			t.Fatal(err)
		}
		c.edit(func(map[string][]byte) map[string][]byte { return data })
	}},
	// Here the replicas that know better must be there, and reach the API server: one that has just
	// started takes what it finds.
	{"an old state comes back", func(t *testing.T, _ *rand.Rand, c *cluster, _ *registrations, replicas []*replica) {
		if c.data == nil {
			return
		}
		old := maps.Clone(c.data)
		time.AfterFunc(6*time.Second, func() {
			for _, rep := range replicas {
				if rep != nil && rep.Check(nil) != nil {
					return
				}
			}
			c.edit(func(data map[string][]byte) map[string][]byte {
				if c.fault != nil && c.fault(nil) != 0 || data == nil {
					return data
				}
				return old
			})
		})
	}},
	{"the API server has a bad moment", func(_ *testing.T, random *rand.Rand, c *cluster, _ *registrations, _ []*replica) {
		until := time.Now().Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fault = func(r *http.Request) int {
			if time.Now().Before(until) && (r == nil || rand.IntN(2) == 0) {
				return 500
			}
			return 0
		}
	}},
}

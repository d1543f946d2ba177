package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
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
	certs  []*x509.Certificate
}

func (r *registrations) write(bundle []byte) error {
	certs, err := parseCertificates(bundle)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, registered{time.Now(), bundle, certs})
	return err
}

// carry reports whether all certificates of a bundle are registered.
func (r *registrations) carry(bundle []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changes) == 0 {
		return errors.New("no webhooks are registered")
	}
	last := r.changes[len(r.changes)-1]
	if bytes.Equal(last.bundle, bundle) {
		return nil
	}
	want, err := parseCertificates(bundle)
	if err != nil {
		return err
	}
	for _, cert := range want {
		if !slices.ContainsFunc(last.certs, cert.Equal) {
			return fmt.Errorf("%s is not registered", cert.Subject)
		}
	}
	return nil
}

// views returns what each API server trusts now: indices of changes, -1 before it knows
// of any.
func (r *registrations) views() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	views := make([]int, len(r.lags))
	for i, lag := range r.lags {
		for views[i] = len(r.changes) - 1; views[i] >= 0 && time.Since(r.changes[views[i]].at) < lag; {
			views[i]--
		}
	}
	return views
}

func (r *registrations) roots(view int) *x509.CertPool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pool := x509.NewCertPool()
	if view >= 0 {
		for _, cert := range r.changes[view].certs {
			pool.AddCert(cert)
		}
	}
	return pool
}

// replica is one of several that share a Secret.
type replica struct {
	*Authority
	started time.Time
	stop    func()
}

// startReplica starts one whose times have the proportions of the defaults, and that
// registers what it knows.
func startReplica(t testing.TB, c *cluster, r *registrations) *replica {
	t.Helper()
	a, err := New(c.config(), "ns", "ca", []string{"pizza.ns.svc"},
		CALifetime(20*time.Minute), RotateAfter(3*time.Minute), CertificateLifetime(80*time.Second),
		Interval(10*time.Second), PropagationDelay(40*time.Second), BundlePropagated(r.carry))
	expect.NoError(t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() { // what package registration does
		for last := []byte(nil); sleep(ctx, rand.N(time.Second)) == nil; {
			if bundle := a.CABundle(); !bytes.Equal(bundle, last) {
				if err := r.write(bundle); err != nil {
					t.Error(err)
				}
				last = bundle
			}
		}
	})
	return &replica{a, time.Now(), func() { cancel(); wg.Wait() }}
}

// No API server ever meets a certificate that it does not trust. The test plays 45 minutes of three
// replicas of which one is always there, with everything that can happen to them and to the Secret,
// several times over. The API servers here are stricter than real ones: they want the issuer among
// what they trust, and take no cross certificate. Without another program that writes a CA, no
// replica takes the CA of another replica for an unknown one.
func TestAuthority_Simulation(t *testing.T) {
	for seed := range uint64(tier.Pick(3, 8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playRotation(t, seed, seed > 0) })
		})
	}
}

func playRotation(t *testing.T, seed uint64, foreign bool) {
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCluster()
	w := &world{
		Rand:    random,
		cluster: c,
		r:       &registrations{lags: []time.Duration{0, 6 * time.Second, 25 * time.Second}},
	}
	w.good()
	w.replicas = []*replica{startReplica(t, c, w.r), startReplica(t, c, w.r), startReplica(t, c, w.r)}
	defer func() {
		for _, rep := range w.replicas {
			if rep != nil {
				rep.stop()
			}
		}
	}()
	time.Sleep(time.Minute)

	var log []string
	type verification struct {
		leaf *tls.Certificate
		view int
	}
	verified := map[verification]bool{}
	rotations, last := 0, []byte(nil)
	next := time.Now()
	for begin := time.Now(); time.Since(begin) < 45*time.Minute; time.Sleep(500 * time.Millisecond) {
		for i, rep := range w.replicas {
			if rep == nil {
				continue
			}
			leaf, err := rep.GetCertificate(nil)
			if err != nil {
				if time.Since(rep.started) > 25*time.Second && time.Since(w.trouble) > 30*time.Second {
					t.Fatalf("after %s, replica %d does not serve: %v\n%q", time.Since(begin), i, err, log[max(0, len(log)-10):])
				}
				continue // it has just started
			}
			for _, view := range w.r.views() {
				// The same chain and bundle get the same answer, while the chain lasts.
				seen := verification{leaf, view}
				if verified[seen] && time.Now().Before(leaf.Leaf.NotAfter) {
					continue
				}
				verified[seen] = true
				if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: "pizza.ns.svc", Roots: w.r.roots(view), CurrentTime: time.Now()}); err != nil {
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
		next = time.Now().Add(time.Second + w.upTo(80*time.Second))
		event := mishaps[random.IntN(len(mishaps))]
		if w.hopeless(event.kind) || !foreign && event.name == anotherCA {
			continue
		}
		log = append(log, fmt.Sprintf("%s: %s", time.Since(begin), event.name))
		event.happens(t, w)
	}
	if rotations < 5 {
		t.Errorf("there were %d rotations in 45 minutes", rotations)
	}
	w.good()
	time.Sleep(2 * time.Minute)
	if reasons := c.eventReasons(t); !foreign && slices.Contains(reasons, "Warning "+unknownCA) {
		t.Errorf("a replica does not know the CA of another: %q", reasons)
	}
	c.state(t) // is whole
	for tries := 0; w.stranger() >= 0; tries++ {
		if tries == 5 { // it is not a change that was made right now
			t.Fatalf("replica %d has another bundle than the Secret", w.stranger())
		}
		time.Sleep(time.Second)
	}
}

// world is where mishaps happen.
type world struct {
	*rand.Rand
	*cluster
	r        *registrations
	replicas []*replica
	trouble  time.Time // until when the API server was not well
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

// good makes the API server well.
func (w *world) good() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = nil
	w.latency = func() time.Duration { return rand.N(150 * time.Millisecond) }
	w.lost = func(r *http.Request) bool { return r.Context().Err() != nil && rand.IntN(2) == 0 } // it goes on without the client
}

// bad makes it unwell for some seconds.
func (w *world) bad(change func()) {
	d := w.upTo(80 * time.Second)
	w.good()
	w.mu.Lock()
	change()
	w.trouble = time.Now().Add(d)
	w.mu.Unlock()
	time.AfterFunc(d, w.good)
}

// well reports whether all replicas have reached the API server for a while.
func (w *world) well() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.trouble) > 30*time.Second
}

func (w *world) whole() bool {
	data := w.snapshot()
	s, err := parseState(data)
	return err == nil && bytes.Equal(data[bundleKey], s.bundle())
}

// stranger returns a replica whose bundle is not the Secret's, or -1.
func (w *world) stranger() int {
	want := w.snapshot()[bundleKey]
	return slices.IndexFunc(w.replicas, func(rep *replica) bool {
		if rep == nil {
			return false
		}
		bundle := rep.CABundle()
		return !bytes.Equal(bundle, want)
	})
}

func (w *world) young() bool {
	return slices.ContainsFunc(w.replicas, func(rep *replica) bool { return rep != nil && rep.Ready(nil) != nil })
}

// hopeless reports whether something would be the last of three that come together. A replica that
// remembers nothing finds no whole Secret, and the others cannot restore it in time: then it
// makes a new CA, which is not trusted yet.
func (w *world) hopeless(k kind) bool {
	together := map[kind]bool{unwell: !w.well(), broken: !w.whole(), newcomer: w.young()}
	together[k] = true
	return together[unwell] && together[broken] && together[newcomer]
}

// kind is what a mishap makes worse.
type kind int

const (
	harmless kind = iota
	unwell
	broken
	newcomer
)

const anotherCA = "somebody puts another CA there"

var mishaps = []struct {
	name    string
	kind    kind
	happens func(t *testing.T, w *world)
}{
	{"nothing", harmless, func(*testing.T, *world) {}},
	{"a replica is killed, or starts", newcomer, func(t *testing.T, w *world) {
		i := 1 + w.IntN(len(w.replicas)-1) // the first one lives
		if w.replicas[i] == nil {
			w.replicas[i] = startReplica(t, w.cluster, w.r)
			return
		}
		w.replicas[i].stop()
		w.replicas[i] = nil
	}},
	{"the Secret is deleted while a replica starts", broken, func(t *testing.T, w *world) {
		if !w.well() { // the others must see it before the new one loses its patience
			return
		}
		i := 1 + w.IntN(len(w.replicas)-1)
		if w.replicas[i] != nil {
			w.replicas[i].stop()
		}
		w.delete()
		w.replicas[i] = startReplica(t, w.cluster, w.r)
	}},
	{"the Secret is deleted", broken, func(_ *testing.T, w *world) { w.delete() }},
	{"a value is corrupted", broken, func(_ *testing.T, w *world) {
		w.edit(func(data map[string][]byte) map[string][]byte {
			for _, key := range keys {
				if value := data[key]; len(value) > 0 && w.IntN(3) == 0 {
					switch w.IntN(3) {
					case 0:
						delete(data, key)
					case 1:
						data[key] = []byte("garbage")
					case 2:
						data[key] = slices.Clone(value)
						data[key][w.IntN(len(value))] ^= 0x10
					}
				}
			}
			return data
		})
	}},
	// A replica that has not reached the API server for a while takes what it finds.
	{anotherCA, broken, func(t *testing.T, w *world) {
		if w.well() {
			w.put(encoded(t, &state{current: makeCA(t, time.Now(), 20*time.Minute)}))
		}
	}},
	// Here the replicas that know better must be there, and reach the API server: one that has just
	// started takes what it finds.
	{"an old state comes back", harmless, func(_ *testing.T, w *world) {
		old := w.snapshot()
		if old == nil {
			return
		}
		time.AfterFunc(time.Minute, func() {
			for _, rep := range w.replicas {
				if rep != nil && (rep.Ready(nil) != nil || time.Since(rep.started) < 15*time.Second) {
					return
				}
			}
			if w.well() {
				w.put(old)
			}
		})
	}},
	{"the API server has a bad moment", unwell, func(_ *testing.T, w *world) {
		w.bad(func() {
			w.fault = func(*http.Request) int { return 500 * rand.IntN(2) }
		})
	}},
	{"the API server is away", unwell, func(_ *testing.T, w *world) {
		w.bad(func() { w.fault = func(*http.Request) int { return 500 } })
		w.endWatches()
	}},
	{"the API server is slow", unwell, func(_ *testing.T, w *world) {
		w.bad(func() { w.latency = func() time.Duration { return 5*time.Second + rand.N(15*time.Second) } })
	}},
	{"answers get lost", unwell, func(_ *testing.T, w *world) {
		w.bad(func() { w.lost = func(*http.Request) bool { return rand.IntN(2) == 0 } })
	}},
	{"the watches end", harmless, func(_ *testing.T, w *world) { w.endWatches() }},
}

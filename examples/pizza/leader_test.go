package pizza

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/test/expect"
)

// leaseServer holds a lease as the API server does, with optimistic locking.
type leaseServer struct {
	working atomic.Int32 // how many replicas work
	mu      sync.Mutex
	version int
	record  resourcelock.LeaderElectionRecord
}

// change changes the lease past its replicas.
func (s *leaseServer) change(change func(*resourcelock.LeaderElectionRecord)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	change(&s.record)
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.HolderIdentity
}

// leaseClient is one replica's connection. Trouble says how a request goes wrong.
type leaseClient struct {
	server   *leaseServer
	identity string
	version  int
	trouble  func(ctx context.Context) (before, after error)
}

var _ resourcelock.Interface = (*leaseClient)(nil)

func (c *leaseClient) do(ctx context.Context, f func() error) error {
	var before, after error
	if c.trouble != nil {
		before, after = c.trouble(ctx)
	}
	if err := errors.Join(before, ctx.Err()); err != nil {
		return err
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if err := errors.Join(f(), after); err != nil {
		return err
	}
	c.version = c.server.version // a client that sees the answer knows the version
	return nil
}

func (c *leaseClient) Get(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = c.do(ctx, func() error {
		if c.server.version == 0 {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, Name)
		}
		copied := c.server.record
		record = &copied
		raw, err = json.Marshal(record)
		return err
	})
	return record, raw, err
}

func (c *leaseClient) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return c.do(ctx, func() error {
		if c.server.version != 0 {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, Name)
		}
		c.server.version, c.server.record = 1, record
		return nil
	})
}

func (c *leaseClient) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return c.do(ctx, func() error {
		if c.server.version != c.version {
			return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, Name, errors.New("lease has changed"))
		}
		c.server.version++
		c.server.record = record
		return nil
	})
}

func (c *leaseClient) RecordEvent(string) {}
func (c *leaseClient) Identity() string   { return c.identity }
func (c *leaseClient) Describe() string   { return "a lease" }

var usual = Lease{Namespace: Namespace, Name: Name, Identity: "a", Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

// contender runs the leadership of one replica in a bubble of synctest.
type contender struct {
	client *leaseClient
	works  atomic.Int32
	terms  atomic.Int32
	stop   func() // in order, and waits
}

// start starts a replica. Its work takes the time of winding to come to its end, and must
// be the only one.
func start(t *testing.T, client *leaseClient, winding func() time.Duration) *contender {
	t.Helper()
	l, err := leadershipOf(usual, client)
	expect.NoError(t, err)
	r := &contender{client: client}
	// The elector says at length what goes wrong, and much goes wrong here.
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx, func(ctx context.Context) {
			r.works.Add(1)
			r.terms.Add(1)
			defer r.works.Add(-1)
			if n := client.server.working.Add(1); n != 1 {
				t.Errorf("%d replicas work", n)
			}
			defer client.server.working.Add(-1)
			<-ctx.Done()
			time.Sleep(winding())
		})
	}()
	r.stop = func() { cancel(); <-ended }
	return r
}

func atOnce() time.Duration { return 0 }

// The lease is released when the work has ended.
func TestLease_ReleasedAfterWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseServer{}
		a := start(t, &leaseClient{server: server, identity: "a"}, func() time.Duration { return 30 * time.Second })
		time.Sleep(time.Second)
		b := start(t, &leaseClient{server: server, identity: "b"}, atOnce)
		defer b.stop()
		time.Sleep(time.Minute)
		if a.works.Load() != 1 || b.works.Load() != 0 {
			t.Fatalf("a works %d times and b %d times", a.works.Load(), b.works.Load())
		}
		begin := time.Now()
		go a.stop()
		// The work goes on for longer than the lease lasts: it is renewed meanwhile.
		for a.works.Load() == 1 {
			if b.works.Load() == 1 || server.holder() != "a" {
				t.Fatalf("after %s a still works, and the lease is %q's", time.Since(begin), server.holder())
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begin); took < 30*time.Second {
			t.Fatalf("a stopped after %s", took)
		}
		time.Sleep(10 * time.Millisecond)
		if holder := server.holder(); holder == "a" { // b may have it already
			t.Error("a has not released the lease")
		}
		time.Sleep(5 * time.Second) // the retry period, and its jitter
		if b.works.Load() != 1 {
			t.Error("b has not taken over")
		}
	})
}

// A replica that is cut off stops before another begins.
func TestLease_ReplicaCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseServer{}
		var cut atomic.Bool
		a := start(t, &leaseClient{server: server, identity: "a", trouble: func(context.Context) (error, error) {
			if cut.Load() {
				return errors.New("no route to host"), nil
			}
			return nil, nil
		}}, atOnce)
		defer a.stop()
		time.Sleep(time.Second)
		b := start(t, &leaseClient{server: server, identity: "b"}, atOnce)
		defer b.stop()
		time.Sleep(time.Minute)
		cut.Store(true)
		begin := time.Now()
		for a.works.Load() == 1 {
			time.Sleep(time.Millisecond)
		}
		stopped := time.Since(begin)
		for b.works.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		began := time.Since(begin)
		// b looks after 2.2 periods at the latest, and counts from what it has seen: client-go,
		// leaderelection.JitterFactor.
		if stopped > usual.RenewDeadline+usual.RetryPeriod || began-stopped < time.Second || began > usual.Duration+5*usual.RetryPeriod {
			t.Errorf("a stopped after %s, and b began after %s", stopped, began)
		}
		// It is not lost forever: when b goes, a leads again.
		cut.Store(false)
		time.Sleep(time.Minute)
		if a.works.Load() != 0 {
			t.Error("both work")
		}
		b.stop()
		time.Sleep(5 * usual.RetryPeriod)
		if a.works.Load() != 1 || a.terms.Load() != 2 {
			t.Errorf("a is in its term %d", a.terms.Load())
		}
	})
}

// A lease that is taken away ends the term at once.
func TestLease_TakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseServer{}
		a := start(t, &leaseClient{server: server, identity: "a"}, atOnce)
		defer a.stop()
		time.Sleep(time.Minute)
		server.change(func(r *resourcelock.LeaderElectionRecord) { r.HolderIdentity = "somebody" })
		begin := time.Now()
		for a.works.Load() == 1 {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(begin); took > usual.RetryPeriod+10*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		time.Sleep(time.Second)
		if holder := server.holder(); holder != "somebody" {
			t.Errorf("the lease of another was given to %q", holder)
		}
		time.Sleep(20 * time.Second) // that one does not renew it
		if a.works.Load() != 1 {
			t.Error("a does not lead again")
		}
	})
}

// The function start sees to it that there are never two that work, here in hours of a bad network.
func TestLease_NeverTwoLeaders(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			server := &leaseServer{}
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 0))
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			var all []*contender
			var bad [3]atomic.Int32 // how bad the network of each is, in percent
			for i, name := range []string{"a", "b", "c"} {
				all = append(all, start(t, &leaseClient{server: server, identity: name, trouble: func(ctx context.Context) (before, after error) {
					select { // latency
					case <-ctx.Done():
					case <-time.After(time.Duration(draw(200)) * time.Millisecond):
					}
					if draw(100) >= int(bad[i].Load()) {
						return nil, nil
					}
					switch draw(3) {
					case 0:
						return errors.New("refused"), nil
					case 1:
						return nil, errors.New("cut off while it was answered")
					default:
						// It hangs as long as the client lets it.
						ctx, cancel := context.WithTimeout(ctx, usual.RenewDeadline/2)
						defer cancel()
						<-ctx.Done()
						return ctx.Err(), nil
					}
				}}, func() time.Duration { return time.Duration(draw(2000)) * time.Millisecond }))
			}
			for end := time.Now().Add(6 * time.Hour); time.Now().Before(end); {
				for i := range bad {
					bad[i].Store([]int32{0, 10, 80, 100}[draw(4)])
				}
				time.Sleep(time.Minute)
			}
			for i := range bad {
				bad[i].Store(0)
			}
			time.Sleep(time.Minute)
			if n := server.working.Load(); n != 1 {
				t.Errorf("seed %d: %d work when all is well again", seed, n)
			}
			for _, r := range all {
				if r.terms.Load() < 10 {
					t.Errorf("seed %d: %s led %d times: the test is too kind", seed, r.client.identity, r.terms.Load())
				}
				r.stop()
			}
		})
	}
}

// A lease that cannot work is a fault.
func TestLease_Faults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Lease)
		want   []string
	}{
		"the usual one":         {func(*Lease) {}, nil},
		"nothing":               {func(l *Lease) { *l = Lease{} }, []string{"no namespace or name", "leaseDuration must be greater than renewDeadline"}},
		"no identity":           {func(l *Lease) { l.Identity = "" }, []string{"Lock identity is empty"}},
		"half a second":         {func(l *Lease) { l.Duration += 500 * time.Millisecond }, []string{"its duration must be whole seconds, not 15.5s"}},
		"a deadline too late":   {func(l *Lease) { l.RenewDeadline = l.Duration }, []string{"leaseDuration must be greater than renewDeadline"}},
		"retries that are rare": {func(l *Lease) { l.RetryPeriod = l.RenewDeadline }, []string{"renewDeadline must be greater than retryPeriod*JitterFactor"}},
	} {
		lease := usual
		c.change(&lease)
		_, err := newLeadership(&rest.Config{}, lease)
		if (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if err != nil && (!strings.HasPrefix(err.Error(), "the lease for the leader: ") || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v lacks %q", name, err, want)
			}
		}
	}
}

// A renewal that falls into the same second as the one before, as the first after the
// acquisition does, must look different to the others: they count the time from the moment in
// which they see a change.
func TestWatchedLock_RenewalsInOneSecond(t *testing.T) {
	second := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	server := &leaseServer{version: 1}
	lock := &watchedLock{Interface: &leaseClient{server: server, identity: "b"}}
	seen := map[string]bool{}
	for _, renewed := range []time.Duration{0, time.Millisecond, 999 * time.Millisecond} {
		server.change(func(r *resourcelock.LeaderElectionRecord) {
			*r = resourcelock.LeaderElectionRecord{HolderIdentity: "a", RenewTime: metav1.NewTime(second.Add(renewed))}
		})
		_, raw, err := lock.Get(t.Context())
		expect.NoError(t, err)
		seen[string(raw)] = true
	}
	if len(seen) != 3 {
		t.Errorf("three renewals look like %d", len(seen))
	}
}

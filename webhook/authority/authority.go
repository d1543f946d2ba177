package authority

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/objectwatch"
	"github.com/crdkit/crdkit/internal/report"
	"github.com/crdkit/crdkit/webhook"
)

// Authority issues serving certificates, signed by a CA that it shares with other replicas in a
// Secret. It is safe for concurrent use.
type Authority struct {
	namespace        string
	name             string // of the Secret, and of the CAs
	hosts            []string
	caLifetime       time.Duration
	rotateAfter      time.Duration
	leafLifetime     time.Duration
	interval         time.Duration // between two reads of the Secret
	retry            time.Duration // the longest time until the next read or watch after a failure
	propagationDelay time.Duration
	propagated       func(bundle []byte) error

	clock   *clock
	client  dynamic.Interface
	secrets dynamic.ResourceInterface // of the namespace
	changes *report.Object
	used    rate.Sometimes // limits the log lines about the CAs of other replicas

	// Only Run uses these fields.
	writes          *rate.Limiter
	lastRead        time.Time // when the last read began, by the wall clock
	missingSince    time.Time // since when the Secret is missing or broken
	pending         *ca       // the next CA
	pendingSince    time.Time
	propagatedSince time.Time // since when all registrations have the next CA, or zero
	refusal         error     // why a registration does not have it

	mu      sync.Mutex
	state   *state
	leaf    *tls.Certificate
	due     time.Time // the next leaf
	problem error     // why the last sync failed
}

var _ webhook.Certificates = (*Authority)(nil)

// New returns an Authority for the CA in the Secret of this namespace and name, at the API server
// of config. Call [Authority.Run] to start it. The hosts are the DNS names and IP addresses at
// which the API server calls the webhooks, for a Service <name>.<namespace>.svc. New returns an
// error that joins all mistakes in the arguments.
func New(config *rest.Config, namespace, name string, hosts []string, opts ...Option) (*Authority, error) {
	a := &Authority{
		namespace:        namespace,
		name:             name,
		caLifetime:       90 * 24 * time.Hour,
		hosts:            slices.Clone(hosts),
		propagationDelay: time.Minute,
		clock:            &clock{},
		used:             rate.Sometimes{First: 10, Interval: time.Minute},
	}
	for _, opt := range opts {
		opt(a)
	}
	a.rotateAfter = cmp.Or(a.rotateAfter, a.caLifetime/2)
	a.leafLifetime = cmp.Or(a.leafLifetime, min(24*time.Hour, a.caLifetime/8))
	a.retry = min(5*time.Second, max(time.Second/2, a.propagationDelay/2))
	a.interval = cmp.Or(a.interval, a.retry)
	a.writes = rate.NewLimiter(rate.Every(a.interval), 20)
	config = rest.CopyConfig(config)
	config.QPS = -1 // Run limits its own writes
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		a.clock.RoundTripper = next
		return a.clock
	})
	client, err := dynamic.NewForConfig(config)
	if err = errors.Join(append(a.validate(), err)...); err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	a.client = client
	a.changes = report.New(corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}, fieldManager,
		caCreated, caRotationStarted, caRotated, caRemoved, secretRecreated, secretRepaired, unknownCA)
	a.secrets = client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	return a, nil
}

func (a *Authority) validate() (errs []error) {
	if problems := validation.IsDNS1123Label(a.namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("namespace %q of the Secret: %s", a.namespace, strings.Join(problems, "; ")))
	}
	if problems := validation.IsDNS1123Subdomain(a.name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("name %q of the Secret: %s", a.name, strings.Join(problems, "; ")))
	}
	if len(a.hosts) == 0 {
		errs = append(errs, errors.New("no hosts, expected the names at which the API server calls the webhooks"))
	}
	for _, host := range a.hosts {
		if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			errs = append(errs, fmt.Errorf("host %q, expected a DNS name or an IP address", host))
		}
	}
	if min(a.caLifetime, a.rotateAfter) <= 0 || a.propagationDelay < 0 {
		errs = append(errs, fmt.Errorf("CALifetime %s, RotateAfter %s and PropagationDelay %s: expected positive durations",
			a.caLifetime, a.rotateAfter, a.propagationDelay))
	}
	if a.caLifetime-a.rotateAfter < a.propagationDelay+4*a.interval {
		errs = append(errs, fmt.Errorf("RotateAfter %s with CALifetime %s: expected a difference of at least %s, the PropagationDelay of %s and four reads of the Secret",
			a.rotateAfter, a.caLifetime, a.propagationDelay+4*a.interval, a.propagationDelay))
	}
	return errs
}

// Run keeps the CA and the certificate up to date until the context is done, and then returns nil.
// Call it once. Failures are retried indefinitely, and logged: the same error once, and different
// errors at most once a minute.
func (a *Authority) Run(ctx context.Context) error {
	defer a.changes.Wait()
	logger := klog.FromContext(ctx).WithValues("secret", klog.KRef(a.namespace, a.name))
	failures := 0
	objectwatch.Object{
		Client: a.secrets, Name: a.name, WatchRetry: a.retry,
		Message: "Cannot look after the webhooks' CA; trying again",
		Sync: func(ctx context.Context) (time.Duration, error) {
			again, err := a.sync(ctx)
			a.mu.Lock()
			a.problem = err
			a.mu.Unlock()
			if err == nil || errors.Is(err, errWaiting) {
				failures = 0
				return again, nil
			}
			failures = min(failures+1, 5) // a missing permission may last, and there may be many replicas
			return min(a.retry, again<<failures), err
		},
	}.Run(klog.NewContext(ctx, logger), make(chan struct{}, 1))
	return nil
}

// errWaiting means that a new CA will be created soon, unless another replica restores the old
// one.
var errWaiting = errors.New("the Secret is missing or broken; another replica may restore it")

// errFight means that another writer overwrites the changes of this replica repeatedly.
var errFight = errors.New("the Secret is changed repeatedly by another writer")

// sync reads the Secret, takes the next step, and returns when to do so again.
func (a *Authority) sync(ctx context.Context) (again time.Duration, err error) {
	// If two replicas write, the second must read again.
	soon := wait.Jitter(a.retry/20, 1)
	now := time.Now().Round(0) // the monotonic clock of a suspended machine stands still
	obj, err := a.read(ctx)
	if err != nil {
		return soon, fmt.Errorf("reading the Secret: %w", err)
	}
	known := a.known()
	mine := known
	if now.Sub(a.lastRead) > 3*a.interval {
		// The memory of this replica is outdated, so that the Secret takes precedence.
		mine = nil
	}
	theirs, wants, err := a.decide(obj, mine, now)
	if err != nil {
		return soon, err
	}
	if mine != nil {
		a.lastRead = now // even if the write fails
	}
	var uid types.UID
	if obj != nil {
		uid = obj.UID
	}
	use := func(s *state) error {
		a.lastRead = now
		a.report(ctx, step{a.hosts, obj, theirs, known, mine, s}, uid, now)
		return a.adopt(s, now)
	}
	if wants != theirs {
		if a.writes.Tokens() < 1 {
			return soon, errFight
		}
		written, err := a.write(ctx, obj, wants)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || obj != nil && apierrors.IsNotFound(err) {
			return soon, nil
		}
		if err != nil {
			// The Secret may have been written; the next read shows it. Until then, serve with
			// the state that was read.
			if theirs != nil && valid(theirs.current.cert, now) && follows(mine, theirs, now) {
				err = errors.Join(err, use(theirs))
			}
			return soon, fmt.Errorf("writing the Secret: %w", err)
		}
		a.writes.Allow()
		uid = written
	}
	if err := use(wants); err != nil {
		return soon, err
	}
	if wants.next != nil {
		if a.refusal != nil && time.Since(a.pendingSince) > 10*(a.propagationDelay+a.interval) {
			err = fmt.Errorf("the rotation waits because a registration lacks the next CA; the current CA expires at %s: %w",
				utc(wants.current.cert.NotAfter), a.refusal)
		}
		return min(a.interval, max(a.propagationDelay, soon)), err
	}
	return wait.Jitter(a.interval*9/10, 0.2), nil
}

// decide returns the state in the Secret, and the state that it should have. They are the same
// if no write is needed, or if another replica may know better. mine is the state that the
// Secret had when this replica read it a moment ago, or nil.
func (a *Authority) decide(obj *corev1.Secret, mine *state, now time.Time) (theirs, wants *state, err error) {
	var broken error
	if obj != nil {
		if theirs, broken = parseState(obj.Data, a.hosts...); broken == nil {
			a.missingSince = time.Time{}
			if wants, err = reconciled(mine, theirs, now); err == nil {
				// Before a next CA is used, it must be in the Secret, where all replicas see it.
				wants, err = a.step(wants, now, wants == theirs && a.isPropagated(wants))
			}
			return theirs, wants, err
		}
	}
	if mine != nil {
		wants = mine
		if obj == nil && mine.next == nil && len(mine.previous) < maxPrevious {
			// Deleting the Secret requests a rotation.
			wants, err = a.rotate(mine, now)
		}
		return nil, wants, err
	}
	if theirs != nil && theirs.current != nil && valid(theirs.current.cert, now) {
		return theirs, theirs, nil // broken, but the current CA is valid
	}
	// Another replica may remember the state, and restore it. It reads the Secret this often, even without a watch.
	if a.missingSince.IsZero() {
		a.missingSince = time.Now()
	}
	if time.Since(a.missingSince) < a.retry+a.retry/5 {
		return nil, nil, errWaiting
	}
	wants, err = a.salvage(theirs, now)
	return nil, wants, err
}

// salvage returns the best state that can be derived from a broken state, or from none.
func (a *Authority) salvage(theirs *state, now time.Time) (*state, error) {
	s := a.known() // an outdated state is better than none
	if s == nil {
		s = &state{}
		if theirs != nil {
			s = &state{current: theirs.next, previous: theirs.previous}
		}
	}
	if s.current == nil {
		var err error
		if s.current, err = newCA(a.name, now, a.caLifetime); err != nil {
			return nil, err
		}
	}
	return a.step(s, now, false)
}

// isPropagated reports whether all registrations have had a state's next CA for long enough
// that each API server trusts it.
func (a *Authority) isPropagated(s *state) bool {
	a.refusal = nil
	if s.next == nil {
		a.pending = nil
		return false
	}
	if a.pending == nil || !a.pending.cert.Equal(s.next.cert) {
		a.pending, a.pendingSince, a.propagatedSince = s.next, time.Now(), time.Time{}
	}
	if a.propagated != nil {
		if a.refusal = a.propagated(s.bundle()); a.refusal != nil {
			a.propagatedSince = time.Time{}
			return false
		}
	}
	if a.propagatedSince.IsZero() {
		a.propagatedSince = time.Now()
	}
	return time.Since(a.propagatedSince) >= a.propagationDelay
}

// known returns the state to serve with, or nil before the first state.
func (a *Authority) known() *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// adopt sets the state to serve with.
func (a *Authority) adopt(s *state, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == nil || !a.state.current.cert.Equal(s.current.cert) {
		a.due = time.Time{}
	}
	a.state = s
	return a.renew(now)
}

// renew issues a new certificate when it is time. It makes no request, because the known CA is
// valid even while the API server is away or slow. The caller has the lock.
func (a *Authority) renew(now time.Time) error {
	if a.state == nil || !valid(a.state.current.cert, now) {
		return nil
	}
	if now.Before(a.due) {
		return nil
	}
	leaf, err := a.state.current.leaf(a.hosts, now, a.leafLifetime)
	if err != nil {
		return err
	}
	// Certificates expire by the wall clock, while the monotonic clock of a suspended machine stands still.
	a.leaf, a.due = leaf, now.Add(leaf.Leaf.NotAfter.Sub(now)/2).Round(0)
	return nil
}

// GetCertificate returns the serving certificate with its chain. The certificate is renewed
// after half of its lifetime, until the known CA expires. GetCertificate returns an error with
// the reason if there is no certificate yet.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.renew(now); err != nil && (a.leaf == nil || !valid(a.leaf.Leaf, now)) {
		return nil, fmt.Errorf("authority: %w", err)
	}
	if a.leaf == nil {
		why := cmp.Or(a.problem, errors.New("the Secret has not been read"))
		return nil, fmt.Errorf("authority: Secret %s/%s: no certificate yet: %w", a.namespace, a.name, why)
	}
	return a.leaf, nil
}

// CABundle returns the PEM certificates of all CAs that the API server must trust, or nil
// before the first CA.
func (a *Authority) CABundle() []byte {
	if s := a.known(); s != nil {
		return s.bundle()
	}
	return nil
}

// Ready is a readiness check for [webhook.Checks]. It returns an error while there is no
// certificate that is valid now. The request may be nil.
func (a *Authority) Ready(*http.Request) error {
	served, err := a.GetCertificate(nil)
	if err != nil {
		return err
	}
	now, leaf := time.Now(), served.Leaf
	if valid(leaf, now) {
		return nil
	}
	err = fmt.Errorf("authority: the certificate is valid from %s to %s, and it is %s", utc(leaf.NotBefore), utc(leaf.NotAfter), utc(now))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.problem != nil {
		err = fmt.Errorf("%w; the last read of Secret %s/%s: %w", err, a.namespace, a.name, a.problem)
	}
	return err
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

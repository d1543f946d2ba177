package authority

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/objectwatch"
	"github.com/crdkit/crdkit/webhook"
)

// Authority keeps a CA in a Secret, with the other replicas, and serves with
// certificates of that CA, which it makes itself and keeps in memory. Its methods
// are safe for concurrent use.
type Authority struct {
	policy
	hosts            []string
	interval         time.Duration
	propagationDelay time.Duration
	propagated       func(bundle []byte) error

	secret *secret

	// Of Run alone.
	writes          *rate.Limiter
	lastRead        time.Time // of the Secret, in this process's own time
	missingSince    time.Time // the Secret, or a whole one
	pending         *ca       // the next CA
	pendingSince    time.Time
	propagatedSince time.Time // all registrations have it; zero if one does not
	refusal         error     // why one does not

	mu      sync.Mutex
	state   *state
	leaf    *tls.Certificate
	due     time.Time // the next leaf
	problem error     // why the last sync failed
}

var _ webhook.Certificates = (*Authority)(nil)

// New returns the authority whose CA is in a Secret, for the API server of the
// configuration; call [Authority.Run]. The hosts are the DNS names and IP
// addresses at which the webhooks are called: for a Service, its name with
// namespace and .svc behind it. The error joins all that is wrong with the
// arguments.
func New(config *rest.Config, namespace, name string, hosts []string, opts ...Option) (*Authority, error) {
	a := &Authority{
		policy: policy{
			name:         name,
			caLifetime:   90 * 24 * time.Hour,
			leafLifetime: 24 * time.Hour,
		},
		hosts:            slices.Clone(hosts),
		interval:         5 * time.Second,
		propagationDelay: time.Minute,
	}
	for _, opt := range opts {
		opt(a)
	}
	if a.rotateAfter == 0 {
		a.rotateAfter = a.caLifetime / 2
	}
	a.writes = rate.NewLimiter(rate.Every(a.interval), 20)
	config = rest.CopyConfig(config)
	config.QPS = -1 // Run has a limit of its own
	client, err := dynamic.NewForConfig(config)
	if err = errors.Join(append(a.validate(namespace), err)...); err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	a.secret = newSecret(client, namespace, name, max(a.interval, 15*time.Second))
	return a, nil
}

func (a *Authority) validate(namespace string) (errs []error) {
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("namespace %q of the Secret: %s", namespace, strings.Join(problems, "; ")))
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
	if min(a.caLifetime, a.rotateAfter, a.leafLifetime, a.interval) <= 0 || a.propagationDelay < 0 {
		errs = append(errs, fmt.Errorf("CALifetime %s, RotateAfter %s, CertificateLifetime %s, Interval %s and PropagationDelay %s: expected positive durations",
			a.caLifetime, a.rotateAfter, a.leafLifetime, a.interval, a.propagationDelay))
	}
	if a.caLifetime-a.rotateAfter < a.propagationDelay+4*a.interval {
		errs = append(errs, fmt.Errorf("RotateAfter is %s with CALifetime %s: a rotation takes four times the Interval of %s, and the PropagationDelay of %s",
			a.rotateAfter, a.caLifetime, a.interval, a.propagationDelay))
	}
	return errs
}

// Run looks after the CA and the certificate until the context ends, and then returns
// nil. Call it once. Failures are retried indefinitely, and logged: the same
// error once, and at most one a minute.
func (a *Authority) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx).WithValues("secret", klog.KRef(a.secret.namespace, a.secret.name))
	objectwatch.Object{
		Client: a.secret.client, Name: a.secret.name, WatchRetry: a.interval,
		Message: "Cannot look after the webhooks' CA; trying again",
		Sync: func(ctx context.Context) (time.Duration, error) {
			again, err := a.sync(ctx)
			a.mu.Lock()
			a.problem = err
			a.mu.Unlock()
			if errors.Is(err, errWaiting) {
				return again, nil
			}
			return again, err
		},
	}.Run(klog.NewContext(ctx, logger), make(chan struct{}, 1))
	return nil
}

// patience is how long a replica that knows no CA waits for one that does, which looks at least
// that often, also without a watch, unless it has a long interval.
func (a *Authority) patience() time.Duration {
	return min(max(2*time.Second, a.interval+a.interval/5), 10*time.Second)
}

// errWaiting says that a new CA is made in a moment, unless another replica comes with the old one.
var errWaiting = errors.New("the Secret is missing or broken; another replica may restore it")

// errFight says that this replica's writes do not last.
var errFight = errors.New("the Secret is changed repeatedly by another writer")

// sync reads the Secret, does what is due, and returns when to do so again.
func (a *Authority) sync(ctx context.Context) (again time.Duration, err error) {
	// Of two writers one has to look again.
	soon := a.interval/20 + rand.N(a.interval/20+1)
	obj, err := a.secret.read(ctx)
	now := time.Now()
	mine := a.known()
	if err != nil {
		return soon, fmt.Errorf("reading the Secret: %w", err)
	}
	if time.Since(a.lastRead) > 3*a.interval {
		// Much may have happened since: what the Secret holds counts for more.
		mine = nil
	}
	theirs, wants, err := a.decide(obj, mine, now)
	if errors.Is(err, errWaiting) {
		soon = min(soon, time.Second)
	}
	if err != nil {
		return soon, err
	}
	if mine != nil {
		a.lastRead = time.Now() // and nothing was missed, whether the write succeeds or not
	}
	if wants != theirs {
		if a.writes.Tokens() < 1 {
			return soon, errFight
		}
		err := a.secret.write(ctx, obj, wants)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || obj != nil && apierrors.IsNotFound(err) {
			return soon, nil
		}
		if err != nil {
			// Whether it was written is not known: the next look tells. The state that was read is
			// good to serve with in any case.
			if theirs != nil && valid(theirs.current.cert, now) && follows(mine, theirs, now) {
				a.lastRead = time.Now()
				err = errors.Join(err, a.adopt(theirs, now))
			}
			return soon, fmt.Errorf("writing the Secret: %w", err)
		}
		a.writes.Allow()
	}
	a.lastRead = time.Now()
	if err := a.adopt(wants, now); err != nil {
		return soon, err
	}
	if wants.next != nil {
		if a.refusal != nil && time.Since(a.pendingSince) > 10*(a.propagationDelay+a.interval) {
			err = fmt.Errorf("the rotation waits for a registration without the next CA; the present one expires at %s: %w",
				utc(wants.current.cert.NotAfter), a.refusal)
		}
		return min(a.interval, max(a.propagationDelay, soon)), err
	}
	return a.interval - a.interval/10 + rand.N(a.interval/5+1), nil
}

// decide returns the state in the Secret, and the one that it should have: the same if
// it is right, or another replica may repair it better, and nil if it is to be left alone
// for now. mine is the state of which this replica knew a moment ago that the Secret had it.
func (a *Authority) decide(obj *corev1.Secret, mine *state, now time.Time) (theirs, wants *state, err error) {
	var broken error
	if obj != nil {
		if theirs, broken = parseSecret(obj); broken == nil {
			a.missingSince = time.Time{}
			if wants, err = reconciled(mine, theirs, now); err == nil {
				// A next CA counts when it is in the Secret, where all replicas see it.
				wants, err = a.step(wants, now, wants == theirs && a.isPropagated(wants))
			}
			return theirs, wants, err
		}
	}
	if mine != nil {
		wants = mine
		if obj == nil && mine.next == nil && len(mine.previous) < maxPrevious {
			// A deleted Secret gets another CA, the usual way.
			wants, err = a.rotate(mine, now)
		}
		return nil, wants, err
	}
	if theirs != nil && theirs.current != nil && valid(theirs.current.cert, now) {
		return theirs, theirs, nil // good enough to serve with
	}
	// Other replicas may know more, and watch.
	if a.missingSince.IsZero() {
		a.missingSince = time.Now()
	}
	if time.Since(a.missingSince) < a.patience() {
		return nil, nil, errWaiting
	}
	wants, err = a.salvage(theirs, now)
	return nil, wants, err
}

// salvage returns the best that can be made of a broken state, or of none.
func (a *Authority) salvage(theirs *state, now time.Time) (*state, error) {
	s := a.known() // it may be old, but there is no other
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

// parseSecret reads the Secret. The error means that it is not as this package writes it.
func parseSecret(obj *corev1.Secret) (*state, error) {
	s, err := parseState(obj.Data)
	if err == nil && !bytes.Equal(obj.Data[bundleKey], s.bundle()) {
		err = fmt.Errorf("%s is not the certificates of all CAs", bundleKey)
	}
	return s, err
}

// isPropagated reports whether a state's next CA has been trusted everywhere for long enough
// that each API server knows.
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

// known returns the state to serve with, or nil before the first one.
func (a *Authority) known() *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// adopt takes a state as the one to serve with.
func (a *Authority) adopt(s *state, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state == nil || !a.state.current.cert.Equal(s.current.cert) {
		a.due = time.Time{}
	}
	a.state = s
	return a.renew(now)
}

// renew makes a new certificate when it is time, without a request: the CA
// that is known is as good as before while the API server is away, or slow. The caller
// has the lock.
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
	a.leaf, a.due = leaf, now.Add(leaf.Leaf.NotAfter.Sub(now)/2)
	return nil
}

// GetCertificate returns the certificate to serve, with its chain: a new one after half
// the time of the one before, until the CA that is known expires. The error says that there is
// none yet, and why.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.renew(now); err != nil && (a.leaf == nil || !valid(a.leaf.Leaf, now)) {
		return nil, fmt.Errorf("authority: %w", err)
	}
	if a.leaf == nil {
		why := cmp.Or(a.problem, errors.New("the Secret has not been read"))
		return nil, fmt.Errorf("authority: Secret %s/%s: no certificate yet: %w", a.secret.namespace, a.secret.name, why)
	}
	return a.leaf, nil
}

// CABundle returns the PEM certificates of all CAs that the API server must
// trust, nil if none is known yet.
func (a *Authority) CABundle() []byte {
	if s := a.known(); s != nil {
		return s.bundle()
	}
	return nil
}

// Check returns an error while there is no certificate that is valid now: a
// check for [webhook.Checks].
func (a *Authority) Check(*http.Request) error {
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
		err = fmt.Errorf("%w; the last look at Secret %s/%s: %w", err, a.secret.namespace, a.secret.name, a.problem)
	}
	return err
}

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

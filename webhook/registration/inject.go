package registration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/objectwatch"
	"github.com/crdkit/crdkit/internal/report"
)

const (
	requestTimeout = 30 * time.Second
	// An object is read again after a change, and after resync in any case.
	resync        = time.Minute
	retry         = 2 * time.Second
	conflictRetry = 100 * time.Millisecond
	bundlePoll    = 200 * time.Millisecond
	// A CA bundle that another writer overwrites is written again writeBurst times at once, and
	// then once per interval. A longer interval makes most requests fail where the other writer
	// writes every second, and a shorter one loads the API server, which creates the handlers of a
	// CRD again after each write.
	writeBurst    = 5
	writeInterval = time.Second
	// During a rollout, one of the two releases would overwrite the other all the time.
	excessDelay = 30 * time.Second
)

var (
	errNotRunning  = errors.New("registration: Inject is not running")
	errUnread      = errors.New("not read yet")
	errNoCA        = errors.New("no CA certificate yet")
	errOverwritten = errors.New("another writer overwrote it")
	errContended   = errors.New("another writer changes the CA bundle repeatedly")
)

// The reasons of [Webhooks.Changes].
const (
	bundleInjected    = "CABundleInjected"
	bundleOverwritten = "CABundleOverwritten"
)

// Inject writes the CA bundle into the webhook configurations and CRDs of the declaration,
// until ctx is done, and then returns nil. It returns an error only if it cannot start,
// because the config is invalid or Inject is already running.
//
// Inject sets clientConfig.caBundle of each webhook, and of each conversion, that points to the
// [Service] or [URL] of the declaration, even if another release of your operator declared it, and
// restores a bundle that is overwritten or removed (see "The CA bundle" in the package documentation).
// Failures are logged and retried, and [Webhooks.Differences] are logged. Every replica can run Inject;
// if one replica has written the bundle, the others write nothing.
//
// If bundle is nil, because another program writes the bundles, such as cert-manager's cainjector,
// Inject only reads the objects for [Webhooks.Ready] and [Webhooks.Differences].
//
// The requests are not limited by the QPS of the config. Inject needs the permissions of [Webhooks.PolicyRules].
func (w *Webhooks) Inject(ctx context.Context, config *rest.Config, bundle Bundle) error {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the default would delay the start where there are many definitions
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("registration: %w", err)
	}
	var states []*objectState
	for _, o := range w.objects {
		if !o.watched && !o.guard {
			continue
		}
		state := &objectState{
			object:   o,
			webhooks: w,
			all:      client,
			client:   client.Resource(o.resource),
			writes:   rate.NewLimiter(rate.Every(writeInterval), writeBurst),
			account:  subjectOf(config),
			wake:     make(chan struct{}, 1),
		}
		if o.watched {
			state.bundle, state.unreachable = bundle, errUnread
		}
		states = append(states, state)
	}
	if !w.states.CompareAndSwap(nil, &states) {
		return errors.New("registration: Inject is running already")
	}
	defer w.states.Store(nil)
	var running sync.WaitGroup
	for _, s := range states {
		running.Go(func() { s.run(ctx) })
	}
	if bundle != nil {
		running.Go(func() { follow(ctx, bundle, states) })
	}
	running.Wait()
	for _, s := range states {
		s.changes.Wait()
	}
	return nil
}

// follow wakes the states when the CA bundle changes.
func follow(ctx context.Context, bundle Bundle, states []*objectState) {
	last := bundle.CABundle()
	wait.UntilWithContext(ctx, func(context.Context) {
		if pem := bundle.CABundle(); !bytes.Equal(pem, last) {
			last = pem
			for _, s := range states {
				objectwatch.Wake(s.wake)
			}
		}
	}, bundlePoll)
}

// objectState is the state of an object in the cluster while Inject runs.
type objectState struct {
	*object
	webhooks *Webhooks
	bundle   Bundle
	all      dynamic.Interface
	client   dynamic.ResourceInterface
	account  string    // of the client, see subjectOf
	written  string    // the CA bundle that the object had last, as base64
	excess   time.Time // since when the object has had further certificates, see excessDelay
	writes   *rate.Limiter
	wake     chan struct{}

	// The last findings.
	mu          sync.Mutex
	read        bool
	current     *unstructured.Unstructured // or nil
	unreachable error                      // see Webhooks.Ready
	differences []Difference
}

// run keeps the CA bundle in an object until ctx is done, and logs other problems. It reads an object of the guard once
// a minute instead of watching it, so that the permission to get the object is enough.
func (s *objectState) run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithValues("kind", s.kind, "name", s.name)
	watched := objectwatch.Object{
		Client: s.client, Name: s.name, WatchRetry: retry,
		Message: "What is registered with the API server does not fit this replica",
		Sync: func(ctx context.Context) (again time.Duration, problem error) {
			pem, noBundle := s.caBundle()
			failure := s.sync(ctx, pem)
			problem = s.report(pem, noBundle, failure)
			switch {
			case s.guard:
				return resync, problem
			case apierrors.IsConflict(failure): // another writer has been faster
				return conflictRetry, nil
			case errors.Is(failure, errContended):
				return writeInterval, problem
			case failure != nil:
				return retry, problem
			case errors.Is(problem, errNoCA):
				return resync, nil
			}
			if left := time.Until(s.excess.Add(excessDelay)); left > 0 {
				return left, problem
			}
			return resync, problem
		},
	}
	if s.guard {
		watched.WatchRetry = 0
		watched.Message = "The guard, which limits what this operator can change, is not as declared, or cannot be read"
	}
	watched.Run(klog.NewContext(ctx, logger), s.wake)
}

// caBundle returns the CA bundle, or nil if another program writes it.
func (s *objectState) caBundle() ([]byte, error) {
	if s.bundle == nil {
		return nil, nil
	}
	pem := s.bundle.CABundle()
	if len(pem) == 0 {
		return nil, errNoCA
	}
	if _, err := cert.ParseCertsPEM(pem); err != nil {
		return nil, fmt.Errorf("CA bundle: %w", err)
	}
	return pem, nil
}

// sync reads an object, and writes the CA bundle into it, if there is one and the object
// lacks it.
func (s *objectState) sync(ctx context.Context, pem []byte) error {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	current, err := s.client.Get(request, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		current, err = nil, nil
	}
	if err != nil {
		return err // the last state is kept
	}
	if current == nil {
		s.written = ""
	} else if pem != nil {
		current, err = s.inject(ctx, current, pem)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.current = true, current
	return err
}

// inject returns the object with the CA bundle, or with an error, the object of the
// cluster.
func (s *objectState) inject(
	ctx context.Context, current *unstructured.Unstructured, pem []byte,
) (*unstructured.Unstructured, error) {
	update := func(obj *unstructured.Unstructured) error {
		request, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		updated, err := s.client.Update(request, obj, metav1.UpdateOptions{FieldManager: s.webhooks.name})
		if err == nil {
			current = updated
		}
		return err
	}
	obj, caBundle := current.DeepCopy(), base64.StdEncoding.EncodeToString(pem)
	entries := s.webhooks.entries(obj)
	var differ []fieldpath.Path
	bundles := fieldpath.NewSet()
	trusted := s.webhooks.untrusted(current, pem) == nil
	for _, e := range entries {
		bundles.Insert(e.bundlePath())
		if e.clientConfig["caBundle"] != caBundle {
			differ = append(differ, e.bundlePath())
			e.clientConfig["caBundle"] = caBundle
		}
	}
	if len(differ) > 0 {
		managers := slices.DeleteFunc(report.Managers(current, differ...), func(m string) bool { return m == s.webhooks.name })
		if trusted && len(managers) == 0 && s.leave(caBundle) {
			return current, nil
		}
		if !s.writes.Allow() {
			return current, fmt.Errorf("%w, with the field managers %q", errContended, managers)
		}
		if err := update(obj); err != nil {
			return current, err
		}
		c := report.Change{Reason: bundleInjected, Message: "Injected the CA bundle"}
		if s.written == caBundle && len(managers) > 0 {
			c = report.Change{Reason: bundleOverwritten, Message: "Injected the CA bundle again", Warning: errOverwritten, Values: []any{"fieldManagers", managers}}
		}
		s.changes.Report(ctx, s.all, current.GetUID(), c)
		obj = current.DeepCopy()
	}
	s.excess = time.Time{}
	if len(entries) > 0 {
		s.written = caBundle
	}
	if disown(obj, s.webhooks.name, bundles) {
		return current, update(obj)
	}
	return current, nil
}

// leave reports whether further certificates may stay for now. It is not certain that a replica has
// written them, because anybody can edit managedFields, so they never stay for longer than excessDelay.
func (s *objectState) leave(caBundle string) bool {
	if s.written != "" && s.written != caBundle {
		return false
	}
	if s.written = caBundle; s.excess.IsZero() {
		s.excess = time.Now()
	}
	return time.Since(s.excess) < excessDelay
}

// report stores the problems of an object for Ready and Differences, and returns them. The
// errors are those of the CA bundle, and of the last request.
func (s *objectState) report(pem []byte, noBundle, failure error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		if s.watched {
			s.unreachable = failure
		}
		return failure
	}
	s.differences = s.webhooks.differences(s.object, s.current)
	if s.limits != "" && strings.HasPrefix(s.account, "system:serviceaccount:") && s.limits != s.account {
		s.differences = append(s.differences, Difference{s.kind, s.name, "spec.matchConditions[operator]", jsonOf(s.limits), jsonOf(s.account)})
	}
	leads := len(s.webhooks.entries(s.current)) > 0
	s.unreachable = nil
	switch {
	case s.declaresWebhook && !leads, !s.declaresWebhook && leads && s.kind == definitionKind:
		s.unreachable = joined(s.differences)
	case leads && noBundle != nil:
		s.unreachable = noBundle
	case pem != nil:
		s.unreachable = s.webhooks.untrusted(s.current, pem)
		if s.unreachable != nil && failure != nil {
			s.unreachable = fmt.Errorf("%w: %w", s.unreachable, failure)
		}
	}
	return cmp.Or(s.unreachable, failure, joined(s.differences))
}

// disown removes the CA bundles from this manager's entries of managedFields, so that no manager owns them, and reports
// whether the object has changed. Otherwise manifests with a CA bundle would conflict, and the bundle would stay, which is
// invalid, when server-side apply removes a conversion. Another program may own other fields under the same name.
func disown(obj *unstructured.Unstructured, manager string, bundles *fieldpath.Set) (changed bool) {
	var entries []metav1.ManagedFieldsEntry
	for _, m := range obj.GetManagedFields() {
		owned := fieldpath.NewSet()
		mine := m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == ""
		if mine && owned.FromJSON(m.FieldsV1.GetRawReader()) == nil && !owned.Intersection(bundles).Empty() {
			changed = true
			rest := owned.Difference(bundles)
			if rest.Empty() {
				continue
			}
			text, _ := rest.ToJSON() // of paths that were read from JSON
			m.FieldsV1 = metav1.NewFieldsV1(string(text))
		}
		entries = append(entries, m)
	}
	if len(entries) == 0 { // without any, the API server keeps those that there are
		return false
	}
	obj.SetManagedFields(entries)
	return changed
}

package registration

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// writeTimeout is how long one write may take.
	writeTimeout = 30 * time.Second
	firstDelay   = 100 * time.Millisecond
	maxDelay     = 30 * time.Second
	// In a fight with somebody else who writes the same fields, an object is written that
	// often at once, and then once in a while.
	burst     = 5
	fightPace = 5 * time.Second
)

// Reconcile keeps what the cluster has registered as it is declared, with the CA bundle,
// until ctx ends. Then it returns nil. An error means that it could not begin.
//
// Each object is watched, so that what somebody changes by hand is repaired at once. It is
// written by server-side apply, with force, under the name of the declaration as the field
// manager: of a definition, spec.conversion and [DeclaredAnnotation]; of a webhook
// configuration the webhooks that are declared. The fields and webhooks of others stay, but
// not match conditions that others have put into a webhook that is declared: they would
// narrow it down. Manifests without a CA bundle may be applied again at any time. Webhooks
// of an older release that are not declared any more are taken away, unless somebody else,
// such as kubectl, has applied them too; conversions never are ([NoConversion]).
// Configurations that are missing are created, definitions never: their absence is an error,
// which [Webhooks.Check] reports. Definitions are written first.
//
// The bundle may be nil: then the CA bundle is somebody else's, such as cert-manager's
// cainjector, and is neither written nor looked at; see [Annotations]. As long as it is
// empty, nothing is written.
//
// What fails is tried again, ever more slowly, and logged when it is another failure than
// before. If somebody else keeps on changing the same fields, the object is written every
// five seconds. Without QPS in the config, the client is not limited. [Webhooks.PolicyRules]
// has the rights that it needs.
//
// Every replica may run Reconcile, also those of different releases; then [ClaimWhen] should
// be given. See "Several replicas, and rolling updates" in the package documentation.
func (w *Webhooks) Reconcile(ctx context.Context, config *rest.Config, bundle Bundle, opts ...ReconcileOption) error {
	config = rest.CopyConfig(config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1 // the default would delay the start where there are many definitions
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("registration: %w", err)
	}
	r := &reconciler{
		webhooks: w,
		bundle:   bundle,
		woken:    make(chan struct{}, 1),
		takeOver: takeOver,
	}
	for _, opt := range opts {
		opt(r)
	}
	start := time.Now()
	for _, o := range w.objects {
		r.lives = append(r.lives, &live{
			object:  o,
			client:  client.Resource(o.resource),
			wake:    r.wake,
			mu:      &w.mu,
			problem: errUnread,
			claim:   claim{start.UnixNano(), o.digest},
			writes:  rate.NewLimiter(rate.Every(fightPace), burst),
		})
	}
	w.mu.Lock()
	if w.lives != nil {
		w.mu.Unlock()
		return errors.New("registration: Reconcile runs already")
	}
	w.lives = r.lives
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lives = nil
	}()

	var followers sync.WaitGroup
	defer followers.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, l := range r.lives {
		followers.Go(func() { l.follow(ctx) })
	}
	r.run(ctx)
	return nil
}

// reconciler keeps the objects right, one after the other.
type reconciler struct {
	webhooks *Webhooks
	bundle   Bundle
	lives    []*live
	woken    chan struct{}
	ready    func() bool // nil when it is, or has been
	takeOver time.Duration
}

func (r *reconciler) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func (r *reconciler) run(ctx context.Context) {
	timer := time.NewTimer(maxDelay)
	defer timer.Stop()
	ask := time.NewTicker(askPace)
	defer ask.Stop()
	for {
		if r.isReady() {
			ask.Stop()
		}
		var pem []byte
		var changed <-chan struct{}
		if r.bundle != nil {
			pem, changed = r.bundle.CABundle()
		}
		next := r.pass(ctx, pem)
		timer.Stop()
		var due <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			due = timer.C
		}
		for waiting := true; waiting; {
			waiting = false
			select {
			case <-ctx.Done():
				return
			case <-r.woken:
			case <-changed:
			case <-due:
			case <-ask.C:
				waiting = !r.isReady()
			}
		}
	}
}

// pass looks at all objects, and returns when to do so again, if nothing happens before.
func (r *reconciler) pass(ctx context.Context, pem []byte) (next time.Time) {
	unusable := r.unusable(pem)
	for _, l := range r.lives {
		if !l.isDefinition() && !r.definitionsTried() {
			break // they come first
		}
		problem := r.keep(ctx, l, pem, unusable)
		if ctx.Err() != nil {
			return next
		}
		r.webhooks.mu.Lock()
		l.problem = problem
		r.webhooks.mu.Unlock()
		l.log(ctx, problem)
		for _, at := range []time.Time{l.notBefore, l.takeOverAt} {
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// unusable says why a CA bundle cannot be written.
func (r *reconciler) unusable(pem []byte) error {
	switch {
	case r.bundle == nil:
		return nil
	case len(pem) == 0:
		return errNoCA
	}
	if _, err := certificates(pem); err != nil {
		return fmt.Errorf("the CA bundle: %w", err)
	}
	return nil
}

// definitionsTried says whether all definitions have been written, or have turned out not to
// be there, or not to be readable.
func (r *reconciler) definitionsTried() bool {
	r.webhooks.mu.Lock()
	defer r.webhooks.mu.Unlock()
	for _, l := range r.lives {
		if l.isDefinition() && !l.tried && l.unread == nil {
			return false
		}
	}
	return true
}

var (
	errUnread  = errors.New("it has not been read yet")
	errNoCA    = errors.New("there is no CA certificate yet")
	errWritten = errors.New("it has just been written, and not been looked at")
	errMissing = errors.New("it is not in the cluster: apply the manifests first, a definition is not created here")
)

// writer writes an object, and returns what it is then.
type writer func(context.Context) (*unstructured.Unstructured, error)

// keep makes an object right, if it is not, and returns why it is not right now. unusable is
// what is wrong with the CA bundle.
func (r *reconciler) keep(ctx context.Context, l *live, pem []byte, unusable error) error {
	l.takeOverAt = time.Time{}
	r.webhooks.mu.Lock()
	current, seen, unread := l.current, l.seen && l.watched, l.unread
	r.webhooks.mu.Unlock()
	if !seen {
		if unread != nil {
			return unread
		}
		return errUnread
	}
	l.tried = true
	now := time.Now()
	if !now.Before(l.notBefore) {
		l.notBefore = time.Time{}
	}
	if unusable != nil {
		return unusable
	}
	var found claim
	if current != nil {
		found = claimOf(current, now)
	}
	first := !l.met
	l.met = true
	if l.isDefinition() && l.empty {
		return l.unserved(current, found, first)
	}
	switch {
	case l.empty && found.digest == "":
		l.claim.time = 0 // it has claimed nothing, so who claims it from now on is newer
		return nil
	case current == nil && l.isDefinition():
		return errMissing
	}
	how, c := r.stand(l, found, first, l.isAbsent(current), now)
	r.webhooks.mu.Lock()
	l.pending = how == pending
	r.webhooks.mu.Unlock()
	switch {
	case how == pending:
		return nil
	case how == theirs:
		if write := l.repair(pem, current); write != nil {
			return l.write(ctx, "its CA bundle", write)
		}
		l.done()
		return nil
	case current == nil:
		return l.write(ctx, "it", l.apply(pem, nil, c))
	}
	var upgraded []metav1.ManagedFieldsEntry
	var err error
	if !l.isDefinition() {
		upgraded, err = withoutUpdates(current, l.manager)
	}
	if err != nil {
		return fmt.Errorf("metadata.managedFields: %w", err)
	}
	if upgraded != nil {
		return l.write(ctx, "metadata.managedFields", func(ctx context.Context) (*unstructured.Unstructured, error) {
			return l.patch(ctx, current, []operation{{"replace", "/metadata/managedFields", upgraded}})
		})
	}
	if at := difference(l.desired(pem, c), current.Object, ""); at != "" {
		return l.write(ctx, strings.TrimPrefix(at, "."), l.apply(pem, current, c))
	}
	l.done()
	return nil
}

// unserved returns an error if another release has registered a conversion in a definition that
// this one does not convert. Were it taken away, stored objects would be read with wrong fields.
// What a later release registers is no concern of a replica that has seen the definition before.
func (l *live) unserved(current *unstructured.Unstructured, found claim, first bool) error {
	switch {
	case found.digest == "":
		l.claim.time = 0
	case first:
		l.claim = l.claim.after(found)
	}
	if current == nil || found.beats(l.claim) {
		return nil
	}
	if theirs := owned(current, l.manager); theirs == nil || len(entriesOf(theirs.Object)) == 0 {
		return nil
	}
	return fmt.Errorf("spec.conversion.strategy is %s, registered by another release of %s, and this release does not convert: "+
		"serve that release, or stop it and set the strategy to None if all versions have the same fields", webhookStrategy, l.manager)
}

// isAbsent says whether nothing is registered in an object of the cluster, so that the first
// to write it brings new requests. One which asks for a webhook that the API server cannot
// call, for want of a CA bundle, is better off with one.
func (l *live) isAbsent(current *unstructured.Unstructured) bool {
	if current == nil || !l.isDefinition() {
		return current == nil
	}
	strategy, _, _ := unstructured.NestedString(current.Object, "spec", "conversion", "strategy")
	return strategy != webhookStrategy
}

// write writes, unless it is too early for that. what is what is wrong.
func (l *live) write(ctx context.Context, what string, write writer) error {
	if !l.notBefore.IsZero() {
		return l.problem // from before; nobody else writes it
	}
	now := time.Now()
	if turn := l.writes.ReserveN(now, 1); turn.DelayFrom(now) > 0 {
		l.notBefore = now.Add(turn.DelayFrom(now))
		turn.CancelAt(now)
		return fmt.Errorf("%s is changed again and again, last by field manager %q: one declaration alone may register it", what, l.lastManager())
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written, err := write(ctx)
	if err != nil {
		delay := min(firstDelay<<min(l.failures, 20), maxDelay)
		l.failures++
		l.notBefore = time.Now().Add(delay + rand.N(delay))
		return err
	}
	l.wrote(written) // and look whether it is right now
	return errWritten
}

// lastManager returns the field manager of the last write.
func (l *live) lastManager() (name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		return ""
	}
	var last metav1.Time
	for _, m := range l.current.GetManagedFields() {
		if m.Time != nil && !m.Time.Before(&last) {
			name, last = m.Manager, *m.Time
		}
	}
	return name
}

// done notes that nothing is to be done.
func (l *live) done() { l.failures, l.notBefore = 0, time.Time{} }

// log logs a failure once, until there is another. In a fight each write of ours is right for a
// moment, and spends what there is to spend.
func (l *live) log(ctx context.Context, problem error) {
	normal := problem == nil || ctx.Err() != nil || apierrors.IsConflict(problem) || apierrors.IsAlreadyExists(problem)
	for _, err := range []error{errUnread, errNoCA, errWritten} {
		normal = normal || errors.Is(problem, err)
	}
	if problem == nil && l.writes.Tokens() >= 1 {
		l.logged = ""
	}
	if normal || problem.Error() == l.logged {
		return
	}
	l.logged = problem.Error()
	klog.FromContext(ctx).Error(problem, "The registration with the API server is not right", "kind", l.kind, "name", l.name)
}

// apply returns a write of all that is declared. It must not win over what it has not seen.
func (l *live) apply(pem []byte, current *unstructured.Unstructured, c claim) writer {
	obj := &unstructured.Unstructured{Object: l.desired(pem, c)}
	if current == nil {
		return func(ctx context.Context) (*unstructured.Unstructured, error) { return l.serverSideApply(ctx, obj) }
	}
	obj.SetResourceVersion(current.GetResourceVersion())
	if patch := l.untangle(obj, current); patch != nil {
		// The claim goes along: else a replica that it supersedes puts its own back in between.
		annotations := map[string]string{}
		maps.Copy(annotations, current.GetAnnotations())
		maps.Copy(annotations, obj.GetAnnotations())
		patch = append(patch, operation{"add", "/metadata/annotations", annotations})
		return func(ctx context.Context) (*unstructured.Unstructured, error) { return l.patch(ctx, current, patch) }
	}
	return func(ctx context.Context) (*unstructured.Unstructured, error) { return l.serverSideApply(ctx, obj) }
}

func (l *live) serverSideApply(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return l.client.Apply(ctx, l.name, obj, metav1.ApplyOptions{FieldManager: l.manager, Force: true})
}

// untangle returns a patch if somebody has put a url where a service shall be, or the other
// way round, or match conditions of their own into a webhook of ours: an apply cannot remove
// what is somebody else's. There must not be both, and a condition more is a request less.
func (l *live) untangle(want, current *unstructured.Unstructured) (patch []operation) {
	wanted := map[string]entry{}
	for _, e := range entriesOf(want.Object) {
		wanted[e.name] = e
	}
	for _, e := range entriesOf(current.Object) {
		ours, ok := wanted[e.name]
		if !ok {
			continue
		}
		for _, other := range []string{"url", "service"} {
			if e.clientConfig[other] != nil && ours.clientConfig[other] == nil {
				config := map[string]any{"caBundle": e.clientConfig["caBundle"]}
				for name, value := range ours.clientConfig {
					config[name] = value
				}
				patch = append(patch, operation{"add", e.path + "/clientConfig", config})
			}
		}
		if foreignCondition(ours.parent, e.parent) != "" {
			patch = append(patch, operation{"add", e.path + "/" + matchConditions, ours.parent[matchConditions]})
		}
	}
	return patch
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// repair returns a write of the CA bundle alone into what a later declaration has
// registered; nil if it is right.
func (l *live) repair(pem []byte, current *unstructured.Unstructured) writer {
	obj := owned(current, l.manager)
	if len(pem) == 0 || obj == nil {
		return nil
	}
	wrong := false
	for _, e := range entriesOf(obj.Object) {
		if !bytes.Equal(e.caBundle(), pem) {
			wrong = true
			e.clientConfig["caBundle"] = base64.StdEncoding.EncodeToString(pem)
		}
	}
	if !wrong {
		return nil
	}
	obj.SetResourceVersion(current.GetResourceVersion())
	return func(ctx context.Context) (*unstructured.Unstructured, error) { return l.serverSideApply(ctx, obj) }
}

// patch patches the object as it was seen, or fails with a conflict.
func (l *live) patch(ctx context.Context, current *unstructured.Unstructured, patch []operation) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(append(patch, operation{"add", "/metadata/resourceVersion", current.GetResourceVersion()}))
	if err != nil {
		return nil, err
	}
	return l.client.Patch(ctx, l.name, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: l.manager})
}

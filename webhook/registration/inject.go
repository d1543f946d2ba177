package registration

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logthrottle"
)

const (
	writeTimeout = 30 * time.Second
	// Where somebody else writes other CA bundles, one is written that often at once, and then once
	// in a while.
	writeBurst    = 5
	writeInterval = 5 * time.Second
)

// Inject writes the CA bundle into the webhook configurations and definitions of the declaration,
// until ctx ends, and then returns nil. An error means that it could not begin.
//
// It writes clientConfig.caBundle of each webhook, and of each conversion, that leads to the
// [Service] or [URL] of the declaration, those of other releases too, and nothing else: no field
// manager owns it then, so that whoever deploys may write and remove it. Each object
// is watched, so that a bundle that somebody overwrites or removes is written again at once. What
// fails is tried again, ever more slowly, and logged. Every replica may run Inject: one of them
// writes, and the others find nothing to do.
//
// Where an object is not as it is declared, Inject logs it once. See [Webhooks.Check] and
// [Webhooks.Differences].
//
// The bundle may be nil: then somebody else writes it, such as cert-manager's cainjector (see
// [Annotations]). Without QPS in the config, the client is not limited. [Webhooks.PolicyRules] has
// the rights that it needs.
func (w *Webhooks) Inject(ctx context.Context, config *rest.Config, bundle Bundle) error {
	config = rest.CopyConfig(config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1 // the default would delay the start where there are many definitions
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("registration: %w", err)
	}
	in := &injector{webhooks: w, bundle: bundle, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[*objectState](100*time.Millisecond, 30*time.Second))}
	var states []*objectState
	for _, o := range w.objects {
		s, err := newState(o, client, in.queue.Add)
		if err != nil {
			return fmt.Errorf("registration: %w", err)
		}
		states = append(states, s)
	}
	w.mu.Lock()
	if w.injector != nil {
		w.mu.Unlock()
		return errors.New("registration: Inject runs already")
	}
	in.states, w.injector = states, in
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.injector = nil
	}()

	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, s := range states {
		running.Go(func() { s.informer.RunWithContext(ctx) })
	}
	running.Go(func() { in.followBundle(ctx) })
	context.AfterFunc(ctx, in.queue.ShutDown)
	for {
		s, done := in.queue.Get()
		if done {
			return nil
		}
		in.sync(ctx, s)
		in.queue.Done(s)
	}
}

// injector is one call of Inject.
type injector struct {
	webhooks *Webhooks
	bundle   Bundle
	states   []*objectState
	queue    workqueue.TypedRateLimitingInterface[*objectState]
}

// objectState is what the cluster has of an object.
type objectState struct {
	*object
	client   dynamic.ResourceInterface
	informer cache.SharedIndexInformer
	logged   logthrottle.Throttle
	caBundle string        // written last
	writes   *rate.Limiter // of that

	unread  atomic.Pointer[error] // why it could not be listed or watched last
	failure atomic.Pointer[error] // why the CA bundle could not be written last
}

var (
	errNotRunning = errors.New("registration: Inject does not run")
	errUnread     = errors.New("not read yet")
	errNoCA       = errors.New("no CA certificate yet")
	errContended  = errors.New("another writer changes the CA bundle again and again")
)

// newState returns the state of an object, and calls changed whenever there is another.
func newState(o *object, client dynamic.Interface, changed func(*objectState)) (*objectState, error) {
	s := &objectState{object: o, client: client.Resource(o.resource)}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, o.name).String()
	s.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return s.client.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return s.client.Watch(ctx, opts)
		},
	}, &unstructured.Unstructured{}, 0, nil)
	noted := s.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		s.unread.Store(&err)
		changed(s)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed(s) },
		UpdateFunc: func(any, any) { changed(s) },
		DeleteFunc: func(any) { changed(s) },
	})
	return s, errors.Join(noted, err)
}

// current returns the object of the cluster, nil if there is none, which is not to be changed. The
// error is why that is not known.
func (s *objectState) current() (*unstructured.Unstructured, error) {
	if !s.informer.HasSynced() {
		if err := s.unread.Load(); err != nil {
			return nil, *err
		}
		return nil, errUnread
	}
	for _, obj := range s.informer.GetStore().List() {
		return obj.(*unstructured.Unstructured), nil
	}
	return nil, nil
}

// followBundle has all objects looked at, and again when there is another CA bundle.
func (in *injector) followBundle(ctx context.Context) {
	for ctx.Err() == nil {
		var changed <-chan struct{}
		if in.bundle != nil {
			_, changed = in.bundle.CABundle()
		}
		for _, s := range in.states {
			in.queue.Add(s)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// caBundle returns the CA bundle, nil if somebody else writes it.
func (in *injector) caBundle() ([]byte, error) {
	if in.bundle == nil {
		return nil, nil
	}
	pem, _ := in.bundle.CABundle()
	if len(pem) == 0 {
		return nil, errNoCA
	}
	if _, err := cert.ParseCertsPEM(pem); err != nil {
		return nil, fmt.Errorf("CA bundle: %w", err)
	}
	return pem, nil
}

// sync writes the CA bundle into an object, and logs what is wrong otherwise.
func (in *injector) sync(ctx context.Context, s *objectState) {
	current, err := s.current()
	if err == nil {
		stale, failure := in.inject(ctx, s, current)
		s.failure.Store(&failure)
		if stale {
			return // the watch brings the next
		}
		err = failure
	}
	if err == nil {
		err = in.unreachable(s, current)
	}
	if err == nil {
		err = joined(in.webhooks.differences(s.object, current))
	}
	switch {
	case err == nil:
		s.logged.Resolved()
	case errors.Is(err, errUnread):
		in.queue.AddAfter(s, time.Second) // an object that is missing is no event
	case errors.Is(err, errNoCA) || ctx.Err() != nil:
	case s.logged.Allow(err):
		klog.FromContext(ctx).Error(err, "What is registered with the API server does not fit this replica", "kind", s.kind, "name", s.name)
	default:
		in.queue.AddAfter(s, logthrottle.Interval)
	}
}

// inject writes the CA bundle into an object where it is not. It reports whether the object is
// another one now.
func (in *injector) inject(ctx context.Context, s *objectState, current *unstructured.Unstructured) (stale bool, err error) {
	pem, err := in.caBundle()
	if err != nil || pem == nil || current == nil {
		return false, nil // unreachable returns the error
	}
	text := base64.StdEncoding.EncodeToString(pem)
	if text != s.caBundle {
		s.caBundle, s.writes = text, rate.NewLimiter(rate.Every(writeInterval), writeBurst)
	}
	obj := current.DeepCopy()
	injected := false
	for _, e := range in.webhooks.entries(obj) {
		if e.clientConfig["caBundle"] != text {
			e.clientConfig["caBundle"], injected = text, true
		}
	}
	switch {
	case injected && s.writes.Tokens() < 1:
		in.queue.AddAfter(s, time.Second)
		return false, errContended
	case !injected && !in.disown(obj):
		in.queue.Forget(s)
		return false, nil
	}
	// It fails with a conflict if the object is another one by now.
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = s.client.Update(ctx, obj, metav1.UpdateOptions{FieldManager: in.webhooks.name})
	switch {
	case err == nil && injected:
		s.writes.Allow()
	case err != nil:
		in.queue.AddRateLimited(s)
	}
	if err == nil || apierrors.IsConflict(err) {
		return true, nil
	}
	return false, err
}

// disown leaves the CA bundles to no field manager, and reports whether the object has changed.
// Otherwise they would stay where server-side apply takes a conversion away, which would be
// invalid then, and manifests with a CA bundle would conflict.
func (in *injector) disown(obj *unstructured.Unstructured) bool {
	all := obj.GetManagedFields()
	others := slices.DeleteFunc(slices.Clone(all), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == in.webhooks.name && m.Operation == metav1.ManagedFieldsOperationUpdate && m.Subresource == ""
	})
	if len(others) == len(all) || len(others) == 0 { // without any, the API server keeps those that there are
		return false
	}
	obj.SetManagedFields(others)
	return true
}

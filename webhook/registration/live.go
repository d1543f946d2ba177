package registration

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// live is what the cluster has of an object, and what came of keeping it right.
type live struct {
	*object
	client dynamic.ResourceInterface
	wake   func() // has the reconciler look at it

	mu      *sync.Mutex                // of the Webhooks
	current *unstructured.Unstructured // nil if there is none; never changed
	seen    bool                       // it has been read
	watched bool                       // and watched
	unread  error                      // why it cannot be read or watched
	problem error                      // why it is not right; nil if it is
	pending bool                       // nothing is registered, and must not be yet
	written bool                       // this replica has written it
	ahead   string                     // the resource version of a write whose event has not come
	beaten  bool                       // the list that is on its way may be older than that
	absent  string                     // the resource version at which there was none, if there is none

	// Of the reconciler alone.
	claim      claim
	met        bool
	rival      claim // the claim of others that holds
	rivalSince time.Time
	takeOverAt time.Time // when it has held too long
	tried      bool
	notBefore  time.Time
	failures   int
	writes     *rate.Limiter
	logged     string
}

var (
	_ cache.ReflectorStore           = (*live)(nil)
	_ cache.ListerWatcherWithContext = (*live)(nil)
)

// follow keeps current up to date until ctx ends.
func (l *live) follow(ctx context.Context) {
	logger := klog.FromContext(ctx)
	cache.NewReflectorWithOptions(l, &unstructured.Unstructured{}, l, cache.ReflectorOptions{
		Logger:          &logger,
		Name:            "registration",
		TypeDescription: l.String(),
		Backoff:         &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 10 * time.Second},
	}).RunWithContext(ctx)
}

// IsWatchListSemanticsUnSupported has the reflector list before it watches. For one object
// that is as good, and the verbs that it takes do not depend on the server.
func (l *live) IsWatchListSemanticsUnSupported() bool { return true }

func (l *live) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = "metadata.name=" + l.name
	l.mu.Lock()
	l.beaten = false
	l.mu.Unlock()
	found, err := l.client.List(ctx, options)
	l.note(err, false)
	return found, err
}

func (l *live) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = "metadata.name=" + l.name
	w, err := l.client.Watch(ctx, options)
	l.note(err, true)
	return w, err
}

// List and Watch are there for [cache.ListerWatcher] alone.
func (l *live) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

func (l *live) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// note notes whether the object can be read, or watched.
func (l *live) note(err error, watched bool) {
	l.mu.Lock()
	if err != nil {
		err = fmt.Errorf("it cannot be read: %w", err)
	}
	l.unread = err
	l.watched = l.watched || watched && err == nil
	l.mu.Unlock()
	l.wake()
}

// set notes what the cluster has; nil if it has none. The caller holds the lock.
func (l *live) set(obj *unstructured.Unstructured) {
	l.current, l.seen = obj, true
	l.wake()
}

// wrote notes the answer to a write of ours, which may be here before its event, or after
// that of a later change, or a deletion.
func (l *live) wrote(obj *unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = true
	known := l.absent
	if l.current != nil {
		known = l.current.GetResourceVersion()
	}
	if older(obj.GetResourceVersion(), known) {
		l.wake()
		return
	}
	l.ahead, l.beaten = obj.GetResourceVersion(), true
	l.set(obj)
}

// older says whether a resource version is older than another. That may be asked within one
// watch alone: when etcd has been restored from a backup, they begin again at a lower number.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func (l *live) Add(obj any) error    { return l.event(obj, false) }
func (l *live) Update(obj any) error { return l.event(obj, false) }
func (l *live) Delete(obj any) error { return l.event(obj, true) }
func (l *live) Resync() error        { return nil }

// Replace notes what a list has found. That is the truth, but for a write of ours that was
// answered after the list had been asked for: its event is still to come.
func (l *live) Replace(all []any, version string) error {
	l.mu.Lock()
	if l.beaten && l.ahead != "" && older(version, l.ahead) {
		l.mu.Unlock()
		return nil
	}
	l.ahead = ""
	if len(all) == 0 {
		l.absent = version
		l.set(nil)
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	return l.event(all[0], false)
}

func (l *live) event(obj any, gone bool) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GetName() != l.name {
		return fmt.Errorf("registration: the API server sent a %T for %s", obj, l.object)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ahead != "" && older(u.GetResourceVersion(), l.ahead) {
		return nil // from before our write
	}
	l.ahead = ""
	if gone {
		l.absent = u.GetResourceVersion() // that of the deletion (storage/etcd3/watcher.go)
		u = nil
	}
	l.set(u)
	return nil
}

package reference

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// Target is a kind to which others refer, and how to find out whether one of its
// objects exists. It serves any number of [Exists], which share its rate of reads.
type Target struct {
	resource Resource
	get      Getter
	rate     *rate.Limiter
	source   source

	mu    sync.RWMutex
	known map[cache.ObjectName]struct{}
}

// Getter reads one object from the API server, past all caches: with an empty
// resourceVersion, not "0". It returns nil if the object exists, and an error for
// which [k8s.io/apimachinery/pkg/api/errors.IsNotFound] holds if it does not. The
// namespace is empty for a cluster-scoped kind. It must return when the context ends.
// It is called from several goroutines.
type Getter func(ctx context.Context, namespace, name string) error

// RequestOption limits the live reads of a [Target].
type RequestOption func(*Target)

// RequestRate limits how many live reads are made a second, and how many at once after
// a pause, like the fields QPS and Burst of rest.Config. The defaults are 20 and 100.
// Over the limit a read waits. If it would wait too long, the request is not decided,
// with 429; no object is denied for it. All users share the limit: a user who exhausts it
// with names of nothing delays only those who use names that the informer does not know.
func RequestRate(qps float32, burst int) RequestOption {
	return func(t *Target) { t.rate = rate.NewLimiter(rate.Limit(qps), burst) }
}

// NewTarget returns the kind whose objects the informer holds. It remembers their names.
// The getter confirms what the informer does not know (see [Metadata]).
//
// The error is that of a wrong option, or of the informer.
func NewTarget(resource Resource, informer Informer, get Getter, opts ...RequestOption) (*Target, error) {
	t := &Target{
		resource: resource, get: get,
		rate: rate.NewLimiter(20, 100), known: map[cache.ObjectName]struct{}{},
	}
	for _, opt := range opts {
		opt(t)
	}
	if !(t.rate.Limit() > 0) || t.rate.Burst() < 1 {
		return nil, fmt.Errorf("reference: target %s: RequestRate is %g and %d, expected more than 0",
			resource, t.rate.Limit(), t.rate.Burst())
	}
	add := func(name cache.ObjectName, _ any) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.known[name] = struct{}{}
	}
	remove := func(name cache.ObjectName) {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.known, name)
	}
	var err error
	if t.source, err = follow(resource.resource, informer, add, remove); err != nil {
		return nil, fmt.Errorf("reference: target %s: %w", resource, err)
	}
	return t, nil
}

// HasSynced reports whether the target knows the objects that were there when the
// informer started. If the informer has stopped, it does not.
func (t *Target) HasSynced() bool { return t.source.ready() == nil }

// Check returns an error until the informer has synced, and again when it has
// stopped. It is a check of webhook.Checks.
func (t *Target) Check(*http.Request) error { return t.source.ready() }

// knows reports whether the informer knows an object of the name.
func (t *Target) knows(name cache.ObjectName) (bool, error) {
	if err := t.source.ready(); err != nil {
		return false, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, found := t.known[name]
	return found, nil
}

// read reports by a live read whether an object exists.
func (t *Target) read(ctx context.Context, name cache.ObjectName) (bool, error) {
	err := t.rate.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, apierrors.NewTooManyRequests("too many requests to the API server would be made", 1)
	}
	err = t.get(ctx, name.Namespace, name.Name)
	// A resource that is not served is answered with 404 too, for every name.
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false, nil
	}
	return err == nil, err
}

// Metadata returns a getter that reads the metadata alone. The client is that of
// [metadata.NewForConfig]. The webhook's user needs the verb get.
func Metadata(client metadata.Interface, resource schema.GroupVersionResource) Getter {
	return func(ctx context.Context, namespace, name string) error {
		_, err := client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

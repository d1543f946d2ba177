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

// Target is a resource whose objects can be referenced. It is safe for concurrent use, and [Exists]
// functions with the same Target share its limit of live reads.
type Target struct {
	resource Resource
	get      func(ctx context.Context, namespace, name string) error
	rate     *rate.Limiter
	source   source

	mu    sync.RWMutex
	known map[cache.ObjectName]struct{}
}

// The limits of a Target's live reads. A user who exhausts them with nonexistent names delays only checks
// of targets that are missing from the informer, or all checks while the informer's watch is broken.
const (
	readsPerSecond = 20
	readBurst      = 100
)

// NewTarget returns a Target of the resource. The Target registers an event handler with the
// informer, which you start, and uses 62 bytes of memory to remember the name of each object. If a
// name is missing from the informer, or the informer may be outdated, get reads the object from the
// API server; see [Metadata]. A request that would wait for the limit of these reads for longer than the
// time limit of [Exists] is left undecided with code 429.
//
// The function get returns nil if the object exists, and an error that
// [k8s.io/apimachinery/pkg/api/errors.IsNotFound] recognizes if it does not. The namespace is empty for a
// cluster-scoped resource. The function must bypass all caches, with an empty resourceVersion instead of
// "0", return when the context is done, and be safe for concurrent use.
//
// NewTarget returns an error if the informer was not created by [NewInformer] or rejects the event
// handler.
func NewTarget(resource Resource, informer Informer, get func(ctx context.Context, namespace, name string) error) (*Target, error) {
	t := &Target{
		resource: resource, get: get,
		rate: rate.NewLimiter(readsPerSecond, readBurst), known: map[cache.ObjectName]struct{}{},
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

// Ready is a readiness check for webhook.Checks. It returns an error until the informer has
// synced, while its watch is broken, and after it has stopped. In these cases, [Exists] reads all
// targets from the API server. The request may be nil.
func (t *Target) Ready(*http.Request) error { return t.source.ready() }

// knows reports whether the informer has an object of the name, and has it for certain.
func (t *Target) knows(name cache.ObjectName) bool {
	if problem, _ := t.source.problem(); problem != "" {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, found := t.known[name]
	return found
}

// read reads from the API server, and reports whether an object exists.
func (t *Target) read(ctx context.Context, name cache.ObjectName) (bool, error) {
	err := t.rate.Wait(ctx)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return false, apierrors.NewTooManyRequests("the webhook's limit of requests to the API server is exceeded", 1)
	}
	err = t.get(ctx, name.Namespace, name.Name)
	// A resource that is not served is answered with 404 too, for every name.
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false, nil
	}
	return err == nil, err
}

// Metadata returns a function for [NewTarget] that reads only the metadata of an object. Create the
// client with [metadata.NewForConfig].
func Metadata(client metadata.Interface, resource schema.GroupVersionResource) func(ctx context.Context, namespace, name string) error {
	return func(ctx context.Context, namespace, name string) error {
		_, err := client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

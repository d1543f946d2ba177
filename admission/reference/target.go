package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// Target is a kind to which others refer, and how to find out whether one of its
// objects exists. It serves any number of [Exists], which share its rate of reads.
type Target struct {
	resource Resource
	selects  bool // see NewSelectorTarget
	get      Getter
	rate     *rate.Limiter
	source   source

	mu    sync.RWMutex
	known map[cache.ObjectName]labels.Set // the labels only if the target selects by them
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
// The error joins all mistakes in the arguments, or is that of the informer.
func NewTarget(resource Resource, informer Informer, get Getter, opts ...RequestOption) (*Target, error) {
	return (&Target{resource: resource, get: get}).start(informer, opts)
}

// NewSelectorTarget is like [NewTarget], for references that select objects by their
// labels: the name of each [Ref] is a label selector, such as app=web or that of
// [labels.Selector.String]. [Exists] wants at least one object to have the labels, in the
// namespace of the reference. An empty selector is not a reference; one that cannot be
// parsed is field.Invalid. The getter is [MetadataBySelector], or one like it.
//
// A check looks at all objects of the informer. [NewReferrers] does not know selectors:
// nothing that they select is kept from deletion.
func NewSelectorTarget(resource Resource, informer Informer, get Getter, opts ...RequestOption) (*Target, error) {
	return (&Target{resource: resource, get: get, selects: true}).start(informer, opts)
}

// start applies the options and follows the informer.
func (t *Target) start(informer Informer, opts []RequestOption) (*Target, error) {
	t.rate, t.known = rate.NewLimiter(20, 100), map[cache.ObjectName]labels.Set{}
	for _, opt := range opts {
		opt(t)
	}
	var errs []error
	if t.resource.resource.Empty() {
		errs = append(errs, errors.New("the resource is empty"))
	}
	if t.get == nil {
		errs = append(errs, errors.New("the getter is nil"))
	}
	if !(t.rate.Limit() > 0) || t.rate.Burst() < 1 {
		errs = append(errs, fmt.Errorf("RequestRate is %g and %d, want more than 0", t.rate.Limit(), t.rate.Burst()))
	}
	var err error
	t.source, err = follow(t.resource.resource, informer, t.add, t.remove)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("reference: target %s: %w", t.resource, err)
	}
	return t, nil
}

func (t *Target) add(name cache.ObjectName, obj any) {
	var set labels.Set
	if t.selects {
		if m, err := meta.Accessor(obj); err == nil {
			set = m.GetLabels()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[name] = set
}

func (t *Target) remove(name cache.ObjectName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}

// HasSynced reports whether the target knows the objects that were there when the
// informer started. If the informer has stopped, it does not.
func (t *Target) HasSynced() bool { return t.source.ready() == nil }

// Check returns an error until the informer has synced, and again when it has
// stopped. It is a check of webhook.Checks.
func (t *Target) Check(*http.Request) error { return t.source.ready() }

// impossible returns why nothing can have the name, or the labels; it is empty if
// something can.
func (t *Target) impossible(name cache.ObjectName) string {
	if t.selects {
		if _, err := labels.Parse(name.Name); err != nil {
			return "not a label selector: " + err.Error()
		}
		name.Name = "any"
	}
	return t.resource.impossible(name)
}

// knows reports whether the informer knows an object of the name, or with the labels.
func (t *Target) knows(name cache.ObjectName) (bool, error) {
	if err := t.source.ready(); err != nil {
		return false, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.selects {
		_, found := t.known[name]
		return found, nil
	}
	selector, err := labels.Parse(name.Name)
	if err != nil {
		return false, err
	}
	for object, set := range t.known {
		if object.Namespace == name.Namespace && selector.Matches(set) {
			return true, nil
		}
	}
	return false, nil
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
// [metadata.NewForConfig]. The webhook's user needs the verb get. Without a client or
// a resource the getter is nil, which [NewTarget] refuses.
func Metadata(client metadata.Interface, resource schema.GroupVersionResource) Getter {
	if client == nil || resource.Version == "" || resource.Resource == "" {
		return nil
	}
	return func(ctx context.Context, namespace, name string) error {
		_, err := client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// MetadataBySelector returns a getter that lists the metadata of one object with a label
// selector, which it is given as the name, past all caches. The webhook's user needs the
// verb list. Without a client or a resource the getter is nil, which [NewSelectorTarget]
// refuses.
func MetadataBySelector(client metadata.Interface, resource schema.GroupVersionResource) Getter {
	if client == nil || resource.Version == "" || resource.Resource == "" {
		return nil
	}
	return func(ctx context.Context, namespace, selector string) error {
		opts := metav1.ListOptions{LabelSelector: selector, Limit: 1}
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, opts)
		if err == nil && len(list.Items) == 0 {
			err = apierrors.NewNotFound(resource.GroupResource(), selector)
		}
		return err
	}
}

package reference

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/logtext"
)

// Referrers is an index of the objects of one resource by the targets that they reference. It
// follows an informer, and is safe for concurrent use.
type Referrers struct {
	resource schema.GroupResource
	target   Resource
	source   source
	index    *index
	broken   atomic.Pointer[error] // the first reason why the index is not complete
}

// NewReferrers returns an index of the objects of the resource, by the targets that refs finds
// in them. It registers an event handler with the informer, which you start. Several Referrers
// may share an informer.
//
// T is the type of the objects in the informer: a pointer to a struct for a typed informer,
// *unstructured.Unstructured for a dynamic informer, and *metav1.PartialObjectMetadata for a
// metadata-only informer. If the informer holds an object of another type, or refs panics,
// [Referrers.Ready] and [NotReferenced] return an error from then on, because referrers may be
// missing.
//
// The index leaves out:
//
//   - references that are optional, and references of an object to itself
//   - referrers that are being deleted
//   - objects that are not in the informer, which may be limited to namespaces or by a
//     selector
//
// With 100,000 referrers that each reference three targets, the index takes 340 bytes per referrer,
// and an index of client-go 360 bytes. A lookup takes microseconds, even with 100,000 referrers of
// one target (`make bench` prints the times of your machine).
//
// NewReferrers returns an error if the informer was not created by [NewInformer], or rejects the
// event handler.
func NewReferrers[T runtime.Object](resource schema.GroupResource, informer Informer, target Resource, refs func(obj T) []Ref) (*Referrers, error) {
	r := &Referrers{resource: resource, target: target, index: newIndex()}
	set := func(name cache.ObjectName, obj any) {
		t, ok := obj.(T)
		if !ok {
			r.fail(fmt.Errorf("the informer of %s holds a %T, not a %T", resource, obj, t))
			return
		}
		if targets, err := r.targetsOf(name, t, func() []Ref { return refs(t) }); err != nil {
			r.fail(fmt.Errorf("the references of %s %q cannot be found: %w", resource, name, err))
		} else {
			r.index.set(name, targets)
		}
	}
	var err error
	r.source, err = follow(resource, informer, set, func(name cache.ObjectName) { r.index.set(name, nil) })
	if err != nil {
		return nil, fmt.Errorf("reference: references from %s to %s: %w", resource, target, err)
	}
	return r, nil
}

func (r *Referrers) fail(err error) { r.broken.CompareAndSwap(nil, &err) }

// targetsOf returns the targets that an object protects from deletion, sorted and without
// duplicates. A panic of refs would end the informer and the program, and becomes an error.
func (r *Referrers) targetsOf(
	user cache.ObjectName, obj runtime.Object, refs func() []Ref,
) (all []cache.ObjectName, err error) {
	if m, err := meta.Accessor(obj); err != nil || m.GetDeletionTimestamp() != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			klog.Background().Error(logtext.Error(err), "The index of references is not complete", "stack", string(debug.Stack()))
		}
	}()
	for _, ref := range refs() {
		target := r.target.resolve(user.Namespace, ref)
		itself := r.resource == r.target.resource && target == user
		lacksNamespace := r.target.namespaced && target.Namespace == ""
		if ref.Name != "" && !ref.Optional && !itself && !lacksNamespace {
			all = append(all, target)
		}
	}
	slices.SortFunc(all, compareNames)
	return slices.Compact(all), nil
}

// Of returns the referrers of the target, sorted by namespace and name. The namespace is empty
// for a cluster-scoped target. While [Referrers.Ready] returns an error, referrers may be
// missing.
//
// Of is for controllers that reconcile all referrers of a target, and returns a new slice at each
// call. A controller must also reconcile each new referrer, because the event of a target may
// arrive before the events of its referrers.
func (r *Referrers) Of(namespace, name string) []cache.ObjectName {
	names, _ := r.index.of(cache.NewObjectName(namespace, name), -1, "")
	return names
}

// HasSynced reports whether the index has all objects that existed when the informer started.
func (r *Referrers) HasSynced() bool { return r.source.hasSynced() }

// Ready is a readiness check for webhook.Checks. It returns an error until the informer has
// synced, while its watch is broken, and after it has stopped. It also returns an error if it
// could not extract the references of an object; see [NewReferrers]. The request may be nil.
func (r *Referrers) Ready(*http.Request) error {
	if err := r.broken.Load(); err != nil {
		return *err
	}
	return r.source.ready()
}

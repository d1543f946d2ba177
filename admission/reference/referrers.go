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
)

// Referrers is the reverse of a reference: the objects of one kind that name
// objects of another, found by what they name. It follows an informer.
type Referrers struct {
	resource schema.GroupResource
	target   Resource
	source   source
	index    *index
	broken   atomic.Pointer[error] // the first reason why the index is not complete
}

// NewReferrers follows an informer of objects of type T, which are of the given
// resource, and remembers which objects of the target they name. The informer may
// serve any number of NewReferrers, and anything else; its owner starts it.
//
// T is what the informer holds: a pointer to a struct for a typed informer,
// *unstructured.Unstructured for a dynamic one, *metav1.PartialObjectMetadata for a
// metadata-only one. If an object is of another type, or the function panics, Check
// and [NotReferenced] return an error from then on: an unknown user must not look
// like none.
//
// References that are optional and those of an object to itself do not count, nor do
// those of objects that are being deleted. Only objects in the informer
// count: one that is limited to namespaces or by a selector does not protect from the others.
//
// The error is that of the informer.
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
		return nil, fmt.Errorf("reference: %s that name %s: %w", resource, target, err)
	}
	return r, nil
}

func (r *Referrers) fail(err error) { r.broken.CompareAndSwap(nil, &err) }

// targetsOf returns what an object names and keeps, sorted and each once. A panic of the
// author's function would end the informer, and with it the program; it is an error.
func (r *Referrers) targetsOf(
	user cache.ObjectName, obj runtime.Object, refs func() []Ref,
) (all []cache.ObjectName, err error) {
	if m, err := meta.Accessor(obj); err != nil || m.GetDeletionTimestamp() != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			klog.Background().Error(err, "The index of references is not complete", "stack", string(debug.Stack()))
		}
	}()
	for _, ref := range refs() {
		if ref.problem != "" {
			return nil, fmt.Errorf("%s: %s", ref.Path, ref.problem)
		}
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

// Of returns the objects that name the given one, sorted by namespace and name.
// The namespace is empty for a cluster-scoped object. While [Referrers.Check] returns an
// error, some may be missing.
//
// It copies them all: for a controller that looks at each. An event of the target
// may come before those of its users; a controller must look at a new user anyway.
func (r *Referrers) Of(namespace, name string) []cache.ObjectName {
	names, _ := r.index.of(cache.NewObjectName(namespace, name), -1, "")
	return names
}

// HasSynced reports whether the objects are known that were there when the informer
// started. If it has stopped, they are not.
func (r *Referrers) HasSynced() bool { return r.source.ready() == nil }

// Check returns an error until the informer has synced, again when it has stopped,
// and if objects are of another type or their references could not be found. It is a
// check of webhook.Checks.
func (r *Referrers) Check(*http.Request) error {
	if err := r.broken.Load(); err != nil {
		return *err
	}
	return r.source.ready()
}

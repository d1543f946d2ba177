package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Referrers is the reverse of a reference: the objects of one kind that name
// objects of another, found by what they name. It follows an informer.
type Referrers struct {
	resource schema.GroupResource
	target   Resource
	deleting bool
	source   source
	index    *index
	bare     *bareReferrers
	fault    atomic.Pointer[error]
}

// ReferrersOption changes what [NewReferrers] counts.
type ReferrersOption func(*Referrers)

// WithDeleting counts also objects that are themselves being deleted, but wait for
// their finalizers. Use it if a finalizer needs what the object names, and can rely
// on that nothing else makes it wait: an object that is deleted in the foreground
// waits for those it owns, and they must not wait for it because it names them too.
func WithDeleting() ReferrersOption { return func(r *Referrers) { r.deleting = true } }

// NewReferrers follows an informer of objects of type T, which are of the given
// resource, and remembers which objects of the target they name. The informer may
// serve any number of NewReferrers, and anything else; its owner starts it. An
// [Indexer] takes one for each pair of resources.
//
// T is what the informer holds: a pointer to a struct for a typed informer,
// *unstructured.Unstructured for a dynamic one, *metav1.PartialObjectMetadata for a
// metadata-only one. If an object is of another type, or the function panics, Check
// and [NotReferenced] return an error from then on: not to know a user must not look
// like having none.
//
// References that are optional, and those of an object to itself, are passed over;
// so are objects that are being deleted, unless [WithDeleting] is given. What the
// informer does not hold is not known: one that is limited to namespaces or by a
// selector does not protect from the others.
//
// The error joins all faults of the arguments, or is that of the informer.
func NewReferrers[T runtime.Object](resource schema.GroupResource, informer Informer, target Resource, refs func(obj T) []Ref, opts ...ReferrersOption) (*Referrers, error) {
	r := &Referrers{resource: resource, target: target}
	errs := []error{check(informer)}
	for i, opt := range opts {
		if opt == nil {
			errs = append(errs, fmt.Errorf("the option at %d is nil", i))
			continue
		}
		opt(r)
	}
	users := resource.String()
	if resource.Empty() {
		users = "the users"
		errs = append(errs, errors.New("the resource of the users is empty"))
	}
	if target.resource.Empty() {
		errs = append(errs, errors.New("the resource of the target is empty"))
	}
	if refs == nil {
		errs = append(errs, errors.New("the function is nil"))
	}
	err := errors.Join(errs...)
	if err == nil {
		err = r.follow(informer, func(obj any) ([]cache.ObjectName, bool) {
			t, ok := obj.(T)
			if !ok {
				r.fail(fmt.Errorf("the informer of %s holds a %T, not a %T", resource, obj, t))
				return nil, false
			}
			return r.named(t, func() []Ref { return refs(t) })
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reference: %s that name %s: %w", users, target.target(), err)
	}
	return r, nil
}

// fail notes the first reason why the index cannot be relied on.
func (r *Referrers) fail(err error) { r.fault.CompareAndSwap(nil, &err) }

// follow makes the index follow the informer.
func (r *Referrers) follow(informer Informer, named func(obj any) ([]cache.ObjectName, bool)) error {
	if bare, ok := informer.(*bareIndexer); ok {
		r.source = newSource(r.resource.String(), informer, bare.HasSynced)
		r.bare = &bareReferrers{bare.indexer, fmt.Sprintf("crdkit/reference/%s/%s", r.resource, r.target)}
		return r.bare.add(named)
	}
	r.index = newIndex()
	set := func(obj any) {
		name, err := cache.ObjectToName(obj)
		if err != nil {
			return // it is nothing that an informer holds
		}
		if targets, ok := named(obj); ok {
			r.index.set(name, targets)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				r.index.set(name, nil)
			}
		},
	})
	if err == nil { // synced is when the events have come, not only the objects
		r.source = newSource(r.resource.String(), informer, registration.HasSynced)
	}
	return err
}

// named returns what an object names and keeps, sorted and each once.
// A panic of the author's function, which would end the informer and with it the
// program, is a fault of the index.
func (r *Referrers) named(obj runtime.Object, refs func() []Ref) (all []cache.ObjectName, ok bool) {
	m, err := meta.Accessor(obj)
	if err != nil || m.GetDeletionTimestamp() != nil && !r.deleting {
		return nil, true
	}
	defer func() {
		if v := recover(); v != nil {
			err := fmt.Errorf("the references of %s %q cannot be found: panic: %v", r.resource, cache.MetaObjectToName(m), v)
			logPanic(context.Background(), err, "The index of references is not complete")
			r.fail(err)
			all, ok = nil, false
		}
	}()
	for _, ref := range refs() {
		if ref.fault != "" {
			r.fail(fmt.Errorf("the references of %s %q cannot be found: %s: %s", r.resource, cache.MetaObjectToName(m), ref.Path, ref.fault))
			return nil, false
		}
		name := r.target.named(m.GetNamespace(), ref)
		itself := r.resource == r.target.resource && name == cache.MetaObjectToName(m)
		homeless := r.target.namespaced && name.Namespace == ""
		if ref.Name != "" && !ref.Optional && !itself && !homeless {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, compareNames)
	return slices.Compact(all), true
}

// Of returns the objects that name the given one, sorted by namespace and name.
// The namespace is empty for a cluster-scoped object.
//
// Before [Referrers.HasSynced], and after a fault (see [Referrers.Check]), some may be
// missing. It copies them all: for a controller that looks at each. An event of the target
// may come before those of its users; a controller must look at a new user anyway.
func (r *Referrers) Of(namespace, name string) []cache.ObjectName {
	names, _ := r.first(cache.ObjectName{Namespace: namespace, Name: name}, -1, "")
	return names
}

// first returns the number of those who name an object, and the first of them; all,
// if most is negative. Those in a namespace can be left out.
func (r *Referrers) first(target cache.ObjectName, most int, leaveOut string) ([]cache.ObjectName, int) {
	if r.bare != nil {
		return r.bare.of(target, most, leaveOut)
	}
	return r.index.of(target, most, leaveOut)
}

// HasSynced says whether the objects are known that were there when the informer
// started. If it has stopped, they are not.
func (r *Referrers) HasSynced() bool { return r.source.ready() == nil }

// Check returns an error until the informer has synced, again when it has stopped,
// and if objects are of another type or their references could not be found. It is a
// check of webhook.Checks.
func (r *Referrers) Check(*http.Request) error {
	if fault := r.fault.Load(); fault != nil {
		return *fault
	}
	if u := r.source.ready(); u != nil {
		return u.err()
	}
	return nil
}

// bareReferrers is the reverse of a reference in a bare indexer.
type bareReferrers struct {
	indexer cache.Indexer
	name    string
}

func (b *bareReferrers) add(named func(obj any) ([]cache.ObjectName, bool)) error {
	return b.indexer.AddIndexers(cache.Indexers{b.name: func(obj any) ([]string, error) {
		targets, _ := named(obj)
		keys := make([]string, 0, len(targets))
		for _, target := range targets {
			keys = append(keys, target.String())
		}
		return keys, nil // an error would be a panic of the indexer
	}})
}

func (b *bareReferrers) of(target cache.ObjectName, most int, leaveOut string) ([]cache.ObjectName, int) {
	keys, err := b.indexer.IndexKeys(b.name, target.String())
	if err != nil {
		panic(err) // the index was added, and indexes are never removed
	}
	names := make([]cache.ObjectName, 0, len(keys))
	for _, key := range keys {
		if name, err := cache.ParseObjectName(key); err == nil && (leaveOut == "" || name.Namespace != leaveOut) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNames)
	if most < 0 || most > len(names) {
		most = len(names)
	}
	return names[:most], len(names)
}

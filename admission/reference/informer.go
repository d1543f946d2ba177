package reference

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Informer is the part of an informer that this package needs. Every
// [cache.SharedIndexInformer] is an Informer, and so is every informer of a controller-runtime
// cache (see interop/controllerruntime).
//
// Both have the method IsStopped() bool. If an informer has this method, requests are left
// undecided after it has stopped.
type Informer interface {
	HasSynced() bool
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// source reports whether an informer's events are complete.
type source struct {
	resource  schema.GroupResource
	hasSynced func() bool
	isStopped func() bool
}

// follow calls set for each object that an informer has or adds or updates, and remove for
// each deleted object.
func follow(
	resource schema.GroupResource, informer Informer,
	set func(cache.ObjectName, any), remove func(cache.ObjectName),
) (source, error) {
	add := func(obj any) {
		if name, err := cache.ObjectToName(obj); err == nil {
			set(name, obj)
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, obj any) { add(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				remove(name)
			}
		},
	})
	if err != nil {
		return source{}, err
	}
	// The registration has synced when all events were delivered. The informer has synced earlier.
	s := source{resource, registration.HasSynced, func() bool { return false }}
	if stops, ok := informer.(interface{ IsStopped() bool }); ok {
		s.isStopped = stops.IsStopped
	}
	return s, nil
}

// ready returns an error if the events are not complete, or nil.
func (s source) ready() error {
	switch {
	case s.isStopped():
		return unavailable("the informer of " + s.resource.String() + " has stopped")
	case !s.hasSynced():
		return unavailable("the informer of " + s.resource.String() + " has not synced yet")
	}
	return nil
}

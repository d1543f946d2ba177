package reference

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Informer is what this package needs of an informer. Every
// [cache.SharedIndexInformer] is one, typed, dynamic or metadata-only, and so is
// every informer of controller-runtime's cache (see interop/controllerruntime).
//
// If it has the method IsStopped, as both have, it is no longer relied on when it has
// stopped.
type Informer interface {
	HasSynced() bool
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// source reports whether what was learned from an informer's events is complete.
type source struct {
	resource  schema.GroupResource
	hasSynced func() bool
	isStopped func() bool
}

// follow calls set for each object that an informer has or gets, and remove for each
// that is gone.
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
	// The registration has synced when the events have come, not only the objects.
	s := source{resource, registration.HasSynced, func() bool { return false }}
	if stops, ok := informer.(interface{ IsStopped() bool }); ok {
		s.isStopped = stops.IsStopped
	}
	return s, nil
}

// ready returns why the events are not complete; nil if they are.
func (s source) ready() error {
	switch {
	case s.isStopped():
		return unavailable("the informer of " + s.resource.String() + " has stopped")
	case !s.hasSynced():
		return unavailable("the informer of " + s.resource.String() + " has not synced yet")
	}
	return nil
}

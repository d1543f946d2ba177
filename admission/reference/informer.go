package reference

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// patience is how long the API server is told to retry after an informer became unusable, before
// the user reads the cause.
const patience = 3 * time.Second

// Informer is the part of an informer that this package needs. Create the informer with
// [NewInformer], or pass it to [Unwatched].
//
// If an informer has the method IsStopped() bool, requests are left undecided after it has stopped.
type Informer interface {
	HasSynced() bool
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Unwatched accepts an informer that was not created by [NewInformer], such as an informer of a
// client-go factory. While the watch of the informer is broken, which lasts for up to a minute
// after a restart of the API server, the checks answer from outdated objects, and return no error.
func Unwatched(i Informer) Informer { return unwatched{i} }

type unwatched struct{ Informer }

// handler receives the events of one or more informers, and their watches.
type handler struct {
	cache.ResourceEventHandlerFuncs
	watchers []*watcher
}

// source reports whether an informer's events are complete.
type source struct {
	resource  schema.GroupResource
	hasSynced func() bool
	isStopped func() bool
	watchers  []*watcher
	begin     time.Time // of the informer, as far as is known
}

// follow calls set for each object that an informer has or adds or updates, and remove for
// each deleted object.
func follow(
	resource schema.GroupResource, i Informer,
	set func(cache.ObjectName, any), remove func(cache.ObjectName),
) (source, error) {
	add := func(obj any) {
		if name, err := cache.ObjectToName(obj); err == nil {
			set(name, obj)
		}
	}
	h := &handler{ResourceEventHandlerFuncs: cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, obj any) { add(obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
				remove(name)
			}
		},
	}}
	u, isUnwatched := i.(unwatched)
	if isUnwatched {
		i = u.Informer
	}
	registration, err := i.AddEventHandler(h)
	if err != nil {
		return source{}, err
	}
	if !isUnwatched && len(h.watchers) == 0 {
		return source{}, errors.New("the informer cannot report a broken watch: create it with reference.NewInformer, or accept that with reference.Unwatched")
	}
	// The registration has synced when all events were delivered, later than the informer.
	s := source{resource, registration.HasSynced, func() bool { return false }, h.watchers, time.Now()}
	if stops, ok := i.(interface{ IsStopped() bool }); ok {
		s.isStopped = stops.IsStopped
	}
	return s, nil
}

// problem returns why the events may be incomplete, and since when, or an empty string.
func (s source) problem() (string, time.Time) {
	if s.isStopped() {
		return "has stopped", time.Now() // the program ends; another replica may answer
	}
	synced := s.hasSynced()
	for _, w := range s.watchers {
		if problem, since := w.problem(synced); problem != "" {
			return problem, since
		}
	}
	if !synced {
		return "has not synced yet", s.begin
	}
	return "", s.begin
}

// ready returns an error if the events may be incomplete, or nil. The error has a Retry-After only
// at first, because the API server would retry until its timeout, and the user would not see the
// cause.
func (s source) ready() error {
	problem, since := s.problem()
	if problem == "" {
		return nil
	}
	problem = "the informer of " + s.resource.String() + " " + problem
	if time.Since(since) < patience {
		return unavailable(problem)
	}
	return errors.New(problem)
}

package reference

import (
	"errors"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Informer is what this package needs of an informer. Every
// [cache.SharedIndexInformer] is one, typed, dynamic or metadata-only, and so is
// every informer of controller-runtime's cache (see interop/controllerruntime).
//
// [NewTarget] looks names up in the store of an informer that has the method
// GetStore, as client-go's have. Of another one it keeps the names itself. An informer
// that has the method IsStopped, as both have, is not relied on any more when it has
// stopped.
type Informer interface {
	HasSynced() bool
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Indexer returns an informer that is a bare indexer, for who fills one by other
// means than an informer. The keys must be those of [cache.MetaNamespaceKeyFunc].
// The function says whether the indexer is filled.
//
// A bare indexer sends no events, so that [NewReferrers] adds an index to it; to
// ask that for the users of one object copies and sorts the keys of all: for 100,000
// users it takes 8,000 to 9,000 times as long as with an informer (`make bench`). [Target] looks
// names up in it as in any store.
func Indexer(indexer cache.Indexer, hasSynced func() bool) Informer {
	return &bareIndexer{indexer: indexer, hasSynced: hasSynced}
}

type bareIndexer struct {
	indexer   cache.Indexer
	hasSynced func() bool
}

func (b *bareIndexer) HasSynced() bool       { return b.hasSynced() }
func (b *bareIndexer) GetStore() cache.Store { return b.indexer }

func (b *bareIndexer) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, errors.New("a bare indexer sends no events")
}

// check returns an error for an informer that cannot be asked.
func check(informer Informer) error {
	if informer == nil {
		return errors.New("the informer is nil")
	}
	if b, ok := informer.(*bareIndexer); ok && (b.indexer == nil || b.hasSynced == nil) {
		return errors.New("the indexer or its function is nil")
	}
	return nil
}

// lookup says of a name whether the informer knows it.
type lookup interface {
	has(name cache.ObjectName) (bool, error)
}

// newLookup returns the lookup of an informer, and what says whether that has synced.
func newLookup(informer Informer) (lookup, func() bool, error) {
	if stored, ok := informer.(interface{ GetStore() cache.Store }); ok {
		return store{stored.GetStore()}, informer.HasSynced, nil
	}
	n := &names{known: map[cache.ObjectName]struct{}{}}
	registration, err := informer.AddEventHandler(n)
	if err != nil {
		return nil, nil, err
	}
	return n, registration.HasSynced, nil
}

type store struct{ cache.Store }

func (s store) has(name cache.ObjectName) (bool, error) {
	_, found, err := s.GetByKey(name.String())
	return found, err
}

// names are those of the objects of an informer that cannot be asked for one, such
// as that of controller-runtime for several namespaces.
type names struct {
	mu    sync.RWMutex
	known map[cache.ObjectName]struct{}
}

func (n *names) has(name cache.ObjectName) (bool, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, found := n.known[name]
	return found, nil
}

func (n *names) OnAdd(obj any, _ bool) {
	if name, err := cache.ObjectToName(obj); err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.known[name] = struct{}{}
	}
}

func (n *names) OnUpdate(_, obj any) { n.OnAdd(obj, false) }

func (n *names) OnDelete(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.known, name)
	}
}

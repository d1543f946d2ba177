package apiservertest

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/crdkit/crdkit/schema/apiservertest/internal/memory"
)

// prefix is the first element of the keys of kube-apiserver (--etcd-prefix).
const prefix = "/registry"

// restOptions has resources stored in memory, in the encoding of a codec.
type restOptions struct {
	client    *kubernetes.Client
	compactor etcd3.Compactor
	codec     runtime.Codec
	clock     clock.WithTicker
	uncached  bool // without a watch cache
}

func (o restOptions) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{
			Config: storagebackend.Config{
				Prefix: prefix, Codec: o.codec, EventsHistoryWindow: storagebackend.DefaultEventsHistoryWindow,
				LeaseManagerConfig: etcd3.NewDefaultLeaseManagerConfig(),
			},
			GroupResource: resource,
		},
		Decorator:               o.newStorage,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          keyPrefix(resource),
	}, nil
}

// RESTOptions returns the storage of an aggregated API server in a test: instead of etcd, a store in memory, which is empty at
// first and ends with the context. Assign it to RESTOptionsGetter of the server's configuration. The codec is that of the stored
// objects; it may be nil for resources that bring their own codec, such as those of package scheme/resource.
func RESTOptions(ctx context.Context, codec runtime.Codec) generic.RESTOptionsGetter {
	o := newRESTOptions(ctx, memory.NewClient(ctx))
	o.codec = codec
	return o
}

func newRESTOptions(ctx context.Context, client *kubernetes.Client) restOptions {
	etcdfeature.DefaultFeatureSupportChecker.CheckClient(context.Background(), endpoint{}, storage.RequestWatchProgress)
	compactor := etcd3.NewCompactor(client.Client, 5*time.Minute, clock.RealClock{}, nil)
	context.AfterFunc(ctx, compactor.Stop)
	return restOptions{client: client, compactor: compactor, clock: endingClock{done: ctx}}
}

// keyPrefix returns the part of a resource's keys between the prefix and the namespace.
func keyPrefix(resource schema.GroupResource) string {
	if resource.Group == "" || resource.Group == eventsv1.GroupName {
		return resource.Resource
	}
	return resource.Group + "/" + resource.Resource
}

// newStorage is the storage of kube-apiserver, with its cache
// (apiserver/pkg/storage/storagebackend/factory/etcd3.go, newETCD3Storage, and
// apiserver/pkg/registry/generic/registry/storage_factory.go, StorageWithCacher).
func (o restOptions) newStorage(
	config *storagebackend.ConfigForResource, resourcePrefix string, key func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	versioner := storage.APIObjectVersioner{}
	transformer := etcd3.WithCorruptObjErrorHandlingTransformer(identity.NewEncryptCheckTransformer())
	decoder := etcd3.WithCorruptObjErrorHandlingDecoder(etcd3.NewDefaultDecoder(config.Codec, versioner))
	store, err := etcd3.New(o.client, o.compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, nil, err
	}
	backend := etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource)
	if o.uncached {
		return backend, sync.OnceFunc(store.Close), nil
	}
	cache, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: backend, Versioner: versioner, GroupResource: config.GroupResource, EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix: resourcePrefix, KeyFunc: key, NewFunc: newFunc, NewListFunc: newListFunc, GetAttrsFunc: attrs,
		IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec, Clock: o.clock,
	})
	if err != nil {
		return nil, nil, err
	}
	delegator := cacher.NewCacheDelegator(cache, backend)
	return cachedStorage{delegator, cache}, sync.OnceFunc(func() {
		delegator.Stop()
		cache.Stop()
		store.Close()
	}), nil
}

// cachedStorage waits until the cache has the objects. Where kube-apiserver answers that a client
// has to try again a second later (Cacher.Watch in apiserver/pkg/storage/cacher/cacher.go), this
// store fills the cache of a new CRD within milliseconds.
type cachedStorage struct {
	storage.Interface
	cache *cacher.Cacher
}

// wait gives up when an object cannot be converted, so that the client gets the answer of the cache.
func (s cachedStorage) wait(ctx context.Context) {
	if !s.cache.Ready() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = s.cache.Wait(ctx)
	}
}

func (s cachedStorage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	s.wait(ctx)
	return s.Interface.Watch(ctx, key, opts)
}

func (s cachedStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if page := opts.ResourceVersion == "" && opts.Predicate.Limit > 0; !page { // a cache without objects leaves pages to the store
		s.wait(ctx)
	}
	return s.Interface.GetList(ctx, key, opts, list)
}

// endingClock is the real clock, or the clock of a bubble. Every wait ends with the context,
// because the cache starts goroutines that wait.
type endingClock struct {
	clock.RealClock
	done context.Context
}

func (c endingClock) Since(t time.Time) time.Duration {
	if c.done.Err() != nil {
		return time.Since(t) + time.Minute
	}
	return time.Since(t)
}

func (c endingClock) After(d time.Duration) <-chan time.Time {
	out := make(chan time.Time, 1)
	fire := sync.OnceFunc(func() { out <- time.Now() })
	stop := context.AfterFunc(c.done, fire)
	time.AfterFunc(d, func() {
		stop()
		fire()
	})
	return out
}

package memory_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/clock"

	"github.com/crdkit/crdkit/schema/apiservertest/internal/memory"
	"github.com/crdkit/crdkit/test/expect"
)

// testStore is the storage of an API server over a store in memory. It counts its requests, and
// the tests exchange its transformer.
type testStore struct {
	storage.Interface
	client    *kubernetes.Client
	codec     runtime.Codec
	prefix    *storagetesting.PrefixTransformer
	transform *exchanged
	kv        *storagetesting.KVRecorder
	lists     *storagetesting.KubernetesRecorder
}

func newStore(t *testing.T) (context.Context, *testStore) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		expect.NoError(t, add(scheme))
	}
	codec := apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	client := memory.NewClient(ctx)
	lists := storagetesting.NewKubernetesRecorder(client.Kubernetes)
	kv := storagetesting.NewKVRecorder(client.KV, lists)
	client.KV, client.Kubernetes = kv, lists
	prefix := storagetesting.NewPrefixTransformer([]byte(stored), false)
	transform := &exchanged{}
	transform.set(prefix)
	versioner := storage.APIObjectVersioner{}
	compactor := etcd3.NewCompactor(client.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	resource := schema.GroupResource{Resource: "pods"}
	leases := etcd3.NewDefaultLeaseManagerConfig()
	leases.ReuseDurationSeconds = 1
	s, err := etcd3.New(client, compactor, codec,
		func() runtime.Object { return &example.Pod{} }, func() runtime.Object { return &example.PodList{} },
		"", "/pods/", resource, transform, leases, etcd3.NewDefaultDecoder(codec, versioner), versioner)
	expect.NoError(t, err)
	t.Cleanup(s.Close)
	return ctx, &testStore{s, client, codec, prefix, transform, kv, lists}
}

// stored is what each value in the store begins with.
const stored = "test!"

// exchanged is a transformer that is another one from time to time.
type exchanged struct{ now atomic.Value }

type transformer struct{ value.Transformer }

func (e *exchanged) set(t value.Transformer) (reset func()) {
	before := e.now.Swap(transformer{t})
	return func() { e.now.Store(before) }
}

func (e *exchanged) TransformFromStorage(ctx context.Context, data []byte, c value.Context) ([]byte, bool, error) {
	return e.now.Load().(transformer).TransformFromStorage(ctx, data, c)
}

func (e *exchanged) TransformToStorage(ctx context.Context, data []byte, c value.Context) ([]byte, error) {
	return e.now.Load().(transformer).TransformToStorage(ctx, data, c)
}

func (s *testStore) UpdatePrefixTransformer(change storagetesting.PrefixTransformerModifier) func() {
	return s.transform.set(change(storagetesting.NewPrefixTransformer([]byte(stored), false)))
}

func (s *testStore) UpdateTransformer(change storagetesting.TransformerModifier) func() {
	return s.transform.set(change(s.transform.now.Load().(transformer).Transformer))
}

// failing has nothing be readable, or everything again.
func (s *testStore) failing(fail bool) {
	s.transform.set(s.prefix)
	if fail {
		s.transform.set(unreadable{s.prefix})
	}
}

type unreadable struct{ value.Transformer }

func (unreadable) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, false, errors.New("bits flipped")
}

// corrupt is the error of a value that cannot be transformed.
func corrupt() error {
	_, _, err := etcd3.WithCorruptObjErrorHandlingTransformer(unreadable{}).TransformFromStorage(context.Background(), nil, nil)
	return err
}

// unsafeDeletion deletes what cannot be read, if that is asked for.
func (s *testStore) unsafeDeletion() *testStore {
	unsafe := *s
	unsafe.Interface = etcd3.NewStoreWithUnsafeCorruptObjectDeletion(s.Interface, schema.GroupResource{Resource: "pods"})
	return &unsafe
}

// key checks what is stored under a key.
func (s *testStore) key(ctx context.Context, t *testing.T, key string) {
	r, err := s.client.KV.Get(ctx, key)
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("%s: %d values, %v", key, len(r.Kvs), err)
	}
	obj, err := runtime.Decode(s.codec, r.Kvs[0].Value[len(stored):])
	expect.NoError(t, err)
	if version := obj.(*example.Pod).ResourceVersion; version != "" {
		t.Errorf("%s: stored with the resource version %s", key, version)
	}
}

// calls checks how many objects a list with a limit reads, and with how many requests, each of
// which asks for twice as much as the one before.
func (s *testStore) calls(t *testing.T, limit, objects uint64) {
	if got := s.prefix.GetReadsAndReset(); got != objects {
		t.Errorf("%d objects read, want %d", got, objects)
	}
	want := uint64(1)
	if limit != 0 {
		for sum := uint64(1); sum < objects; sum += limit {
			limit = min(2*limit, 10000)
			want++
		}
	}
	if got := s.kv.GetReadsAndReset() + s.kv.GetStreamReadsAndReset(); got != want {
		t.Fatalf("%d requests, want %d", got, want)
	}
}

// keys lists the keys of all objects, for the estimate of their size.
func (s *testStore) keys(ctx context.Context) (keys []string, err error) {
	r, err := s.client.KV.Get(ctx, "/pods/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range r.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

// compaction compacts to a revision, and waits until the storage has heard of it.
func (s *testStore) compaction() storagetesting.Compaction {
	c := s.client.Client
	return func(ctx context.Context, t *testing.T, resourceVersion string) {
		rv, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
		expect.NoError(t, err)
		version, _, _, err := etcd3.Compact(ctx, c, 0, int64(rv))
		if s.CompactRevision() == 0 && version > 1 { // another compaction came first
			_, _, _, err = etcd3.Compact(ctx, c, version, int64(rv))
		}
		expect.NoError(t, err)
		for s.CompactRevision() != int64(rv) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Upstream's conformance tests for a store. These are all, except for
// RunTestOptionalWatchBookmarksWithCorrectResourceVersion, which tests upstream's cache, and
// RunBenchmark…, which measure.
func TestStore_Conformance(t *testing.T) {
	plain := func(test func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, *testStore) {
		return func(ctx context.Context, t *testing.T, s *testStore) { test(ctx, t, s) }
	}
	prefix := func(test func(context.Context, *testing.T, storagetesting.InterfaceWithPrefixTransformer)) func(context.Context, *testing.T, *testStore) {
		return func(ctx context.Context, t *testing.T, s *testStore) { test(ctx, t, s) }
	}
	compaction := func(test func(context.Context, *testing.T, storage.Interface, storagetesting.Compaction)) func(context.Context, *testing.T, *testStore) {
		return func(ctx context.Context, t *testing.T, s *testStore) { test(ctx, t, s, s.compaction()) }
	}
	// The reads of the compactor would be counted, too, and the first list of the process, which asks for a stream in vain.
	calls := func(test func(context.Context, *testing.T, storage.Interface, storagetesting.CallsValidation)) func(context.Context, *testing.T, *testStore) {
		return func(_ context.Context, t *testing.T, _ *testStore) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.ListFromCacheSnapshot, false)
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EtcdRangeStream, false)
			ctx, s := newStore(t)
			test(ctx, t, s, s.calls)
		}
	}
	unreadable := func(test func(context.Context, testing.TB, storage.Interface, func(bool))) func(context.Context, *testing.T, *testStore) {
		return func(ctx context.Context, t *testing.T, s *testStore) { test(ctx, t, s, s.failing) }
	}
	tests := map[string]func(context.Context, *testing.T, *testStore){
		"CreateWithTTL":                              plain(storagetesting.RunTestCreateWithTTL),
		"CreateWithKeyExist":                         plain(storagetesting.RunTestCreateWithKeyExist),
		"Get":                                        plain(storagetesting.RunTestGet),
		"UnconditionalDelete":                        plain(storagetesting.RunTestUnconditionalDelete),
		"ConditionalDelete":                          plain(storagetesting.RunTestConditionalDelete),
		"DeleteWithSuggestion":                       plain(storagetesting.RunTestDeleteWithSuggestion),
		"DeleteWithSuggestionAndConflict":            plain(storagetesting.RunTestDeleteWithSuggestionAndConflict),
		"DeleteWithSuggestionOfDeletedObject":        plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		"ValidateDeletionWithSuggestion":             plain(storagetesting.RunTestValidateDeletionWithSuggestion),
		"ValidateDeletionWithOnlySuggestionValid":    plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		"DeleteWithConflict":                         plain(storagetesting.RunTestDeleteWithConflict),
		"PreconditionalDeleteWithSuggestion":         plain(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		"PreconditionalDeleteWithOnlySuggestionPass": plain(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		"ListPaging":                                 plain(storagetesting.RunTestListPaging),
		"GetListRecursivePrefix":                     plain(storagetesting.RunTestGetListRecursivePrefix),
		"KeySchema":                                  plain(storagetesting.RunTestKeySchema),
		"GuaranteedUpdateWithTTL":                    plain(storagetesting.RunTestGuaranteedUpdateWithTTL),
		"GuaranteedUpdateWithConflict":               plain(storagetesting.RunTestGuaranteedUpdateWithConflict),
		"GuaranteedUpdateWithSuggestionAndConflict":  plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		"Watch":                                  plain(storagetesting.RunTestWatch),
		"ClusterScopedWatch":                     plain(storagetesting.RunTestClusterScopedWatch),
		"NamespaceScopedWatch":                   plain(storagetesting.RunTestNamespaceScopedWatch),
		"DeleteTriggerWatch":                     plain(storagetesting.RunTestDeleteTriggerWatch),
		"WatchFromNonZero":                       plain(storagetesting.RunTestWatchFromNonZero),
		"DelayedWatchDelivery":                   plain(storagetesting.RunTestDelayedWatchDelivery),
		"WatchContextCancel":                     plain(storagetesting.RunTestWatchContextCancel),
		"WatcherTimeout":                         plain(storagetesting.RunTestWatcherTimeout),
		"WatchDeleteEventObjectHaveLatestRV":     plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		"WatchInitializationSignal":              plain(storagetesting.RunTestWatchInitializationSignal),
		"SendInitialEventsBackwardCompatibility": plain(storagetesting.RunSendInitialEventsBackwardCompatibility),
		"WatchSemantics":                         plain(storagetesting.RunWatchSemantics),
		"WatchSemanticInitialEventsExtended":     plain(storagetesting.RunWatchSemanticInitialEventsExtended),
		"WatchListMatchSingle":                   plain(storagetesting.RunWatchListMatchSingle),
		"NamespaceScopedList":                    plain(storagetesting.RunTestNamespaceScopedList),
		"WatchFromZero":                          compaction(storagetesting.RunTestWatchFromZero),
		"ListInconsistentContinuation":           compaction(storagetesting.RunTestListInconsistentContinuation),
		"ListContinuation":                       calls(storagetesting.RunTestListContinuation),
		"ListContinuationWithFilter":             calls(storagetesting.RunTestListContinuationWithFilter),
		"ListPaginationRareObject":               calls(storagetesting.RunTestListPaginationRareObject),
		"ListResourceVersionMatch":               prefix(storagetesting.RunTestListResourceVersionMatch),
		"GuaranteedUpdateChecksStoredData":       prefix(storagetesting.RunTestGuaranteedUpdateChecksStoredData),
		"TransformationFailure":                  prefix(storagetesting.RunTestTransformationFailure),
		"WatchError":                             prefix(storagetesting.RunTestWatchError),
		"WatchErrorIsBlockingFurtherEvents":      prefix(storagetesting.RunWatchErrorIsBlockingFurtherEvents),
		"DeleteExpectedTransformOrDecodeError":   unreadable(storagetesting.RunTestDeleteExpectedTransformOrDecodeError),
		"DeleteWithConflictAndMissingExpectedTransformOrDecodeError": unreadable(storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError),
		"DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		},
		"Create": func(ctx context.Context, t *testing.T, s *testStore) { storagetesting.RunTestCreate(ctx, t, s, s.key) },
		"GuaranteedUpdate": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.key)
		},
		"List": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestList(ctx, t, s, s.compaction(), false, s.lists)
		},
		"GetListWithErrorAggregation": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestGetListWithErrorAggregation(ctx, t, s.unsafeDeletion(), corrupt())
		},
		"GetListWithoutErrorAggregation": func(_ context.Context, t *testing.T, _ *testStore) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
			ctx, s := newStore(t)
			storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s, corrupt())
		},
		"GetListNonRecursive": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, s.increase, s)
		},
		"ConsistentList": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestConsistentList(ctx, t, s, s.increase, false, true, false)
		},
		"CompactRevision": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestCompactRevision(ctx, t, s, s.increase, s.compaction())
		},
		"Stats": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestStats(ctx, t, s, s.codec, s.prefix, false)
		},
		"StatsWithSizes": func(ctx context.Context, t *testing.T, s *testStore) {
			expect.NoError(t, s.EnableResourceSizeEstimation(s.keys))
			storagetesting.RunTestStats(ctx, t, s, s.codec, s.prefix, true)
		},
		"ProgressNotify": func(ctx context.Context, t *testing.T, s *testStore) {
			defer s.progress(ctx)()
			storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.increase)
		},
		"WatchDispatchBookmarkEvents": func(ctx context.Context, t *testing.T, s *testStore) {
			defer s.progress(ctx)()
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, false)
		},
		"WatchWithUnsafeDelete": func(ctx context.Context, t *testing.T, s *testStore) {
			storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, corrupt())
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, s := newStore(t)
			test(ctx, t, s)
		})
	}
	for _, name := range []string{"List", "ConsistentList", "WatchSemantics", "WatchSemanticInitialEventsExtended", "WatchListMatchSingle"} {
		t.Run(name+"WithoutRangeStream", func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EtcdRangeStream, false)
			ctx, s := newStore(t)
			tests[name](ctx, t, s)
		})
	}
}

// increase writes a key that is not an object.
func (s *testStore) increase(ctx context.Context, t *testing.T) int64 {
	r, err := s.client.KV.Put(ctx, "increaseRV", "ok")
	expect.NoError(t, err)
	return r.Header.Revision
}

// progress asks for progress notifications, which etcd sends at intervals.
func (s *testStore) progress(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		for ctx.Err() == nil {
			_ = s.client.RequestProgress(ctx)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return stop
}

// Upstream's compactor watches from the revision that the store has.
func TestWatch_OfAnEmptyStore(t *testing.T) {
	ctx, s := newStore(t)
	watching := s.client.Watch(ctx, "a", clientv3.WithRev(1))
	_, err := s.client.KV.Put(ctx, "a", "b")
	expect.NoError(t, err)
	if r := <-watching; r.Err() != nil || len(r.Events) != 1 || string(r.Events[0].Kv.Value) != "b" {
		t.Errorf("got %v, %v", r.Events, r.Err())
	}
}

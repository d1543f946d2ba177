package memory_test

import (
	"context"
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
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/utils/clock"

	"github.com/crdkit/crdkit/schema/offline/internal/memory"
)

// newStore returns the storage of an API server over a store in memory.
func newStore(t *testing.T) (context.Context, storage.Interface, *kubernetes.Client) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	codec := apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	client := memory.NewClient(ctx)
	versioner := storage.APIObjectVersioner{}
	compactor := etcd3.NewCompactor(client.Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	s, err := etcd3.New(client, compactor, codec,
		func() runtime.Object { return &example.Pod{} }, func() runtime.Object { return &example.PodList{} },
		"", "/pods/", schema.GroupResource{Resource: "pods"}, identity.NewEncryptCheckTransformer(),
		etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return ctx, s, client
}

// compaction compacts to a revision, and waits until the storage has heard of it.
func compaction(s storage.Interface, c *clientv3.Client) storagetesting.Compaction {
	return func(ctx context.Context, t *testing.T, resourceVersion string) {
		rv, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
		if err != nil {
			t.Fatal(err)
		}
		version, _, _, err := etcd3.Compact(ctx, c, 0, int64(rv))
		if s.CompactRevision() == 0 && version > 1 { // another compaction came first
			_, _, _, err = etcd3.Compact(ctx, c, version, int64(rv))
		}
		if err != nil {
			t.Fatal(err)
		}
		for s.CompactRevision() != int64(rv) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Upstream's conformance tests for a store.
func TestStore_Conformance(t *testing.T) {
	for name, test := range map[string]func(context.Context, *testing.T, storage.Interface){
		"CreateWithTTL":                              storagetesting.RunTestCreateWithTTL,
		"CreateWithKeyExist":                         storagetesting.RunTestCreateWithKeyExist,
		"Get":                                        storagetesting.RunTestGet,
		"UnconditionalDelete":                        storagetesting.RunTestUnconditionalDelete,
		"ConditionalDelete":                          storagetesting.RunTestConditionalDelete,
		"DeleteWithSuggestion":                       storagetesting.RunTestDeleteWithSuggestion,
		"DeleteWithSuggestionAndConflict":            storagetesting.RunTestDeleteWithSuggestionAndConflict,
		"DeleteWithSuggestionOfDeletedObject":        storagetesting.RunTestDeleteWithSuggestionOfDeletedObject,
		"ValidateDeletionWithSuggestion":             storagetesting.RunTestValidateDeletionWithSuggestion,
		"ValidateDeletionWithOnlySuggestionValid":    storagetesting.RunTestValidateDeletionWithOnlySuggestionValid,
		"DeleteWithConflict":                         storagetesting.RunTestDeleteWithConflict,
		"PreconditionalDeleteWithSuggestion":         storagetesting.RunTestPreconditionalDeleteWithSuggestion,
		"PreconditionalDeleteWithOnlySuggestionPass": storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass,
		"ListPaging":                                 storagetesting.RunTestListPaging,
		"GetListRecursivePrefix":                     storagetesting.RunTestGetListRecursivePrefix,
		"KeySchema":                                  storagetesting.RunTestKeySchema,
		"GuaranteedUpdateWithTTL":                    storagetesting.RunTestGuaranteedUpdateWithTTL,
		"GuaranteedUpdateWithConflict":               storagetesting.RunTestGuaranteedUpdateWithConflict,
		"GuaranteedUpdateWithSuggestionAndConflict":  storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict,
		"Watch":                                  storagetesting.RunTestWatch,
		"ClusterScopedWatch":                     storagetesting.RunTestClusterScopedWatch,
		"NamespaceScopedWatch":                   storagetesting.RunTestNamespaceScopedWatch,
		"DeleteTriggerWatch":                     storagetesting.RunTestDeleteTriggerWatch,
		"WatchFromNonZero":                       storagetesting.RunTestWatchFromNonZero,
		"DelayedWatchDelivery":                   storagetesting.RunTestDelayedWatchDelivery,
		"WatchContextCancel":                     storagetesting.RunTestWatchContextCancel,
		"WatcherTimeout":                         storagetesting.RunTestWatcherTimeout,
		"WatchDeleteEventObjectHaveLatestRV":     storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV,
		"WatchInitializationSignal":              storagetesting.RunTestWatchInitializationSignal,
		"SendInitialEventsBackwardCompatibility": storagetesting.RunSendInitialEventsBackwardCompatibility,
		"WatchSemantics":                         storagetesting.RunWatchSemantics,
		"WatchSemanticInitialEventsExtended":     storagetesting.RunWatchSemanticInitialEventsExtended,
		"WatchListMatchSingle":                   storagetesting.RunWatchListMatchSingle,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s, _ := newStore(t)
			test(ctx, t, s)
		})
	}
	t.Run("GetListNonRecursive", func(t *testing.T) {
		ctx, s, c := newStore(t)
		storagetesting.RunTestGetListNonRecursive(ctx, t, increase(c), s)
	})
	t.Run("WatchFromZero", func(t *testing.T) {
		ctx, s, c := newStore(t)
		storagetesting.RunTestWatchFromZero(ctx, t, s, compaction(s, c.Client))
	})
	t.Run("ListInconsistentContinuation", func(t *testing.T) {
		ctx, s, c := newStore(t)
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, compaction(s, c.Client))
	})
	t.Run("ListResourceVersionMatch", func(t *testing.T) {
		ctx, s, c := newStore(t)
		storagetesting.RunTestConsistentList(ctx, t, s, increase(c), false, true, false)
	})
	t.Run("CompactRevision", func(t *testing.T) {
		ctx, s, c := newStore(t)
		storagetesting.RunTestCompactRevision(ctx, t, s, increase(c), compaction(s, c.Client))
	})
	t.Run("ProgressNotify", func(t *testing.T) {
		ctx, s, c := newStore(t)
		stop := progress(ctx, c)
		defer stop()
		storagetesting.RunOptionalTestProgressNotify(ctx, t, s, increase(c))
	})
}

// increase writes a key that is not an object.
func increase(c *kubernetes.Client) storagetesting.IncreaseRVFunc {
	return func(ctx context.Context, t *testing.T) int64 {
		r, err := c.KV.Put(ctx, "increaseRV", "ok")
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Revision
	}
}

// progress asks for progress notifications, which etcd sends at intervals.
func progress(ctx context.Context, c *kubernetes.Client) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		for ctx.Err() == nil {
			_ = c.RequestProgress(ctx)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return stop
}

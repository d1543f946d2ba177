package apiservertest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/crdkit/crdkit/schema/apiservertest"
	"github.com/crdkit/crdkit/test/expect"
)

// The storage of an aggregated API server holds objects in the encoding of its codec, each storage its own.
func TestRESTOptions_StoresInMemory(t *testing.T) {
	t.Parallel()
	resource := corev1.SchemeGroupVersion.WithResource("configmaps").GroupResource()
	newFunc, newListFunc := func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} }
	key := func(obj runtime.Object) (string, error) {
		return registry.NoNamespaceKeyFunc(t.Context(), "/configmaps", obj.(*corev1.ConfigMap).Name)
	}
	for range 2 {
		opts, err := apiservertest.RESTOptions(t.Context(), scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)).GetRESTOptions(resource, nil)
		expect.NoError(t, err)
		s, destroy, err := opts.Decorator(opts.StorageConfig, "/configmaps", key, newFunc, newListFunc, storage.DefaultNamespaceScopedAttr, nil, nil)
		expect.NoError(t, err)
		defer destroy()
		created, got := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		expect.NoError(t, s.Create(t.Context(), "/configmaps/a", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"}}, created, 0))
		expect.NoError(t, s.Get(t.Context(), "/configmaps/a", storage.GetOptions{}, got))
		if diff := cmp.Diff(map[string]string{"a": "b"}, got.Data); diff != "" || got.ResourceVersion != created.ResourceVersion {
			t.Errorf("resourceVersion %q, data (-want +got):\n%s", got.ResourceVersion, diff)
		}
	}
}

// A list right after the first request waits for the cache. A finalizer of definitions that does not get its list tries again only
// when its informer resyncs, five minutes later (apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go: the second
// attempt meets a conflict with the status that the first has written).
func TestRESTOptions_ListWaits(t *testing.T) {
	t.Parallel()
	opts, err := apiservertest.RESTOptions(t.Context(), scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)).
		GetRESTOptions(corev1.SchemeGroupVersion.WithResource("configmaps").GroupResource(), nil)
	expect.NoError(t, err)
	key := func(obj runtime.Object) (string, error) {
		return registry.NoNamespaceKeyFunc(t.Context(), "/configmaps", obj.(*corev1.ConfigMap).Name)
	}
	for range 20 {
		s, destroy, err := opts.Decorator(opts.StorageConfig, "/configmaps", key, func() runtime.Object { return &corev1.ConfigMap{} },
			func() runtime.Object { return &corev1.ConfigMapList{} }, storage.DefaultNamespaceScopedAttr, nil, nil)
		expect.NoError(t, err)
		expect.NoError(t, s.GetList(t.Context(), "/configmaps", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, &corev1.ConfigMapList{}))
		destroy()
	}
}

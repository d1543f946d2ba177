package apiservertest

import (
	"context"
	"errors"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/discovery"
)

// namespaceREST deletes a namespace when what is in it has gone, as kube-apiserver
// (kubernetes/pkg/registry/core/namespace/storage/storage.go) and the namespace controller do.
type namespaceREST struct {
	namedStore
	server *Server
}

// DeleteCollection is not served: a server has no route for it.
func (r namespaceREST) DeleteCollection(context.Context, rest.ValidateObjectFunc, *metav1.DeleteOptions, *metainternalversion.ListOptions) (runtime.Object, error) {
	return nil, apierrors.NewMethodNotSupported(r.DefaultQualifiedResource, "deletecollection")
}

func (r namespaceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	key, err := r.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	preconditions := (*storage.Preconditions)(options.Preconditions)
	out, begun := r.New(), false
	err = r.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions, storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		namespace := existing.(*corev1.Namespace)
		begun = namespace.DeletionTimestamp == nil
		if !begun {
			return namespace, nil
		}
		if err := validate(ctx, namespace); err != nil {
			return nil, err
		}
		namespace.DeletionTimestamp = new(metav1.Now())
		namespace.Status.Phase = corev1.NamespaceTerminating
		return namespace, nil
	}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		err = storageerr.InterpretGetError(err, r.DefaultQualifiedResource, name)
		return nil, false, storageerr.InterpretUpdateError(err, r.DefaultQualifiedResource, name)
	}
	if begun && !dryrun.IsDryRun(options.DryRun) {
		go r.empty(key, name)
	}
	return out, false, nil
}

// empty deletes what is in a namespace, repeatedly while finalizers keep something, and
// then the namespace, which its spec.finalizers keep until then.
func (r namespaceREST) empty(key, name string) {
	ctx := genericapirequest.WithNamespace(r.server.life, metav1.NamespaceNone)
	// In a bubble, a finalizer may keep something for hours.
	backoff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.1, Steps: math.MaxInt, Cap: 5 * time.Second}
	_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		left, err := r.deleteContent(ctx, name)
		return err == nil && left == 0, nil
	})
	out := &corev1.Namespace{}
	err := r.Storage.GuaranteedUpdate(ctx, key, out, false, nil, storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		existing.(*corev1.Namespace).Spec.Finalizers = nil
		return existing, nil
	}), false, nil)
	if err == nil {
		// Where this fails, an update of the namespace without metadata.finalizers has deleted it.
		_, _, _ = r.Store.Delete(ctx, name, rest.ValidateAllObjectFunc, metav1.NewPreconditionDeleteOptions(string(out.UID)))
	}
}

// shouldDeleteNamespace reports whether an update of a namespace removes it, as
// ShouldDeleteNamespaceDuringUpdate of kube-apiserver.
func shouldDeleteNamespace(ctx context.Context, key string, obj, existing runtime.Object) bool {
	return len(obj.(*corev1.Namespace).Spec.Finalizers) == 0 && registry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
}

// deleteContent returns how many objects are left.
func (r namespaceREST) deleteContent(ctx context.Context, namespace string) (left int64, err error) {
	lists, err := r.server.kube.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return 0, err
	}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "deletecollection"}}, lists))
	if err != nil {
		return 0, err
	}
	var errs []error
	for gvr := range resources {
		count := func() int64 {
			stored, _ := r.server.store.KV.Get(ctx, keyOf(gvr.GroupResource(), namespace, "")+"/", clientv3.WithPrefix(), clientv3.WithCountOnly()) // from memory
			return stored.Count
		}
		if count() > 0 {
			errs = append(errs, r.server.dynamic.Resource(gvr).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
			left += count()
		}
	}
	return left, errors.Join(errs...)
}

package offline

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// namespaceREST deletes a namespace when what is in it has gone, as kube-apiserver
// (kubernetes/pkg/registry/core/namespace/storage/storage.go) and the namespace controller do.
type namespaceREST struct {
	builtinREST
	server *Server
	done   context.Context
}

func (r namespaceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	key, err := r.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	preconditions := &storage.Preconditions{}
	if p := options.Preconditions; p != nil {
		preconditions.UID, preconditions.ResourceVersion = p.UID, p.ResourceVersion
	}
	out := r.New()
	err = r.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions, storage.SimpleUpdate(func(existing runtime.Object) (runtime.Object, error) {
		namespace := existing.(*corev1.Namespace)
		if namespace.DeletionTimestamp == nil {
			namespace.DeletionTimestamp = new(metav1.Now())
		}
		namespace.Status.Phase = corev1.NamespaceTerminating
		return namespace, validate(ctx, namespace)
	}), dryrun.IsDryRun(options.DryRun), nil)
	if err != nil {
		err = storageerr.InterpretGetError(err, r.DefaultQualifiedResource, name)
		return nil, false, storageerr.InterpretUpdateError(err, r.DefaultQualifiedResource, name)
	}
	if !dryrun.IsDryRun(options.DryRun) {
		go r.empty(name)
	}
	return out, false, nil
}

// empty deletes what is in a namespace, repeatedly while finalizers keep something, and
// then the namespace.
func (r namespaceREST) empty(name string) {
	ctx := genericapirequest.WithNamespace(r.done, metav1.NamespaceNone)
	for ctx.Err() == nil {
		left, err := r.deleteContent(ctx, name)
		if err == nil && left == 0 {
			_, _, err = r.Store.Delete(ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			if err == nil || apierrors.IsNotFound(err) {
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// deleteContent returns how many objects are left.
func (r namespaceREST) deleteContent(ctx context.Context, namespace string) (left int, err error) {
	discover, err := discovery.NewDiscoveryClientForConfig(r.server.config)
	if err != nil {
		return 0, err
	}
	client, err := dynamic.NewForConfig(r.server.config)
	if err != nil {
		return 0, err
	}
	lists, err := discover.ServerPreferredNamespacedResources()
	if err != nil {
		return 0, err
	}
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "deletecollection"}}, lists))
	if err != nil {
		return 0, err
	}
	var errs []error
	for gvr := range resources {
		resource := client.Resource(gvr).Namespace(namespace)
		list, err := resource.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			if err = resource.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err == nil {
				list, err = resource.List(ctx, metav1.ListOptions{})
			}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		left += len(list.Items)
	}
	return left, errors.Join(errs...)
}

package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdkit/crdkit/admission/reference"
)

// Informer returns a cache's informer of the type of an object, for
// [reference.NewTarget] and [reference.NewReferrers]: a Go type,
// *unstructured.Unstructured or *metav1.PartialObjectMetadata, of which the latter
// two must have apiVersion and kind. It does not wait for the informer to sync, and
// may be called before the cache is started. The error is the cache's.
//
// The cache must create its informers with [reference.NewInformer], so that a broken
// watch is noticed. Set the field NewInformer of its options, which are
// manager.Options.Cache for the cache of a manager.
//
// A cache of several namespaces works too. It does not know
// other namespaces: a reference to an object there costs a live read each time,
// and users there do not keep anything from being deleted.
func Informer(ctx context.Context, c cache.Informers, obj client.Object) (reference.Informer, error) {
	if c == nil || obj == nil {
		return nil, errors.New("controllerruntime: the cache or the object is nil")
	}
	informer, err := c.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: the informer of %T: %w", obj, err)
	}
	return informer, nil
}

// Getter returns the live read of [reference.NewTarget]: it reads the metadata of
// objects of a kind. The reader must read from the API server, as a manager's
// GetAPIReader does, and not from the cache that is to be confirmed.
func Getter(live client.Reader, kind schema.GroupVersionKind) func(ctx context.Context, namespace, name string) error {
	return func(ctx context.Context, namespace, name string) error {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	}
}

// CreateAccessReview returns the function for [reference.Authorize] that creates reviews with a client.
// The client's scheme must know authorization.k8s.io/v1, as that of client-go does.
func CreateAccessReview(c client.Writer) func(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	return func(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
		answer := review.DeepCopy()
		if err := c.Create(ctx, answer, &client.CreateOptions{Raw: &opts}); err != nil {
			return nil, err
		}
		return answer, nil
	}
}

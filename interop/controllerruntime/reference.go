package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
// A cache of several namespaces works too. It knows nothing of
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
// GetAPIReader does, and not from the cache that is to be confirmed. Without a reader
// or a kind the getter is nil, which NewTarget refuses.
func Getter(live client.Reader, kind schema.GroupVersionKind) reference.Getter {
	if live == nil || kind.Version == "" || kind.Kind == "" {
		return nil
	}
	return func(ctx context.Context, namespace, name string) error {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(kind)
		return live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	}
}

// SelectorGetter returns the live read of [reference.NewSelectorTarget]: it lists the
// metadata of one object. The reader is that of [Getter].
func SelectorGetter(live client.Reader, kind schema.GroupVersionKind) reference.Getter {
	if live == nil || kind.Version == "" || kind.Kind == "" {
		return nil
	}
	return func(ctx context.Context, namespace, selector string) error {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return err
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err = live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: parsed}, client.Limit(1))
		if err == nil && len(list.Items) == 0 {
			err = apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, selector)
		}
		return err
	}
}

// AccessReviews returns a client as [reference.Authorize] takes it. Its scheme must
// know authorization.k8s.io/v1, as that of client-go does. Without a client they are
// nil, which Authorize refuses.
func AccessReviews(c client.Writer) reference.AccessReviews {
	if c == nil {
		return nil
	}
	return accessReviews{c}
}

type accessReviews struct{ client client.Writer }

func (a accessReviews) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	answer := review.DeepCopy()
	if err := a.client.Create(ctx, answer, &client.CreateOptions{Raw: &opts}); err != nil {
		return nil, err
	}
	return answer, nil
}

package reference

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// Getter reads one object from the API server, past all caches: with an empty
// resourceVersion, not "0". It returns nil if the object exists, and an error for
// which [k8s.io/apimachinery/pkg/api/errors.IsNotFound] holds if it does not. The
// namespace is empty for a cluster-scoped kind. The context ends when the answer is
// no longer wanted. It is called from several goroutines.
type Getter func(ctx context.Context, namespace, name string) error

// Metadata returns a getter that reads the metadata alone. The client is that of
// [metadata.NewForConfig]. The webhook's user needs the verb get. Without a client or
// a resource the getter is nil, which [NewTarget] refuses.
func Metadata(client metadata.Interface, resource schema.GroupVersionResource) Getter {
	if client == nil || resource.Version == "" || resource.Resource == "" {
		return nil
	}
	return func(ctx context.Context, namespace, name string) error {
		var err error
		if objects := client.Resource(resource); namespace == "" {
			_, err = objects.Get(ctx, name, metav1.GetOptions{})
		} else {
			_, err = objects.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		}
		return err
	}
}

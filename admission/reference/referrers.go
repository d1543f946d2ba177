package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
)

// maxNamed is how many referrers an answer names; of the others it gives the number.
const maxNamed = 10

// Referrers is the reverse of a reference: the objects that name others, found by
// what they name.
type Referrers struct {
	resource schema.GroupResource
	informer Informer
	index    string
}

// NewReferrers adds an index to the informer, which holds objects of type T, by
// the objects to which they refer. The resource is that of T, and stands in error
// messages; it also names the index, so that one informer takes one NewReferrers
// for each resource. The error is that of [cache.Indexer].AddIndexers.
//
// An object of another type than T is not indexed: a typed informer holds
// pointers to structs, a dynamic one *unstructured.Unstructured, a metadata-only
// one *metav1.PartialObjectMetadata.
func NewReferrers[T runtime.Object](resource schema.GroupResource, informer Informer, refs func(obj T) []Ref) (*Referrers, error) {
	r := &Referrers{resource: resource, informer: informer, index: "crdkit/reference/" + resource.String()}
	err := informer.GetIndexer().AddIndexers(cache.Indexers{r.index: func(obj any) ([]string, error) {
		t, ok := obj.(T)
		if !ok {
			return nil, nil // an error would be a panic of the informer
		}
		var keys []string
		for _, ref := range refs(t) {
			if ref.Name != "" {
				keys = append(keys, ref.key())
			}
		}
		slices.Sort(keys)
		return slices.Compact(keys), nil
	}})
	if err != nil {
		return nil, fmt.Errorf("reference: indexing %s: %w", resource, err)
	}
	return r, nil
}

// Of returns the keys, namespace/name, of the objects that name the given one,
// sorted. The namespace is empty for a cluster-scoped object.
func (r *Referrers) Of(namespace, name string) ([]string, error) {
	keys, err := r.informer.GetIndexer().IndexKeys(r.index, cache.NewObjectName(namespace, name).String())
	slices.Sort(keys)
	return keys, err
}

// NotReferenced returns a validating function for the deletion of objects of type
// T, which are of the given resource: it is forbidden while others name the
// object. The error names up to ten of them; of more, it says how many there are.
//
// It returns an error that is no verdict while the informer has not synced.
func NotReferenced[T runtime.Object](resource schema.GroupResource, referrers *Referrers) func(ctx context.Context, obj T) (field.ErrorList, error) {
	return func(_ context.Context, obj T) (field.ErrorList, error) {
		if !referrers.informer.HasSynced() {
			return nil, notSynced(referrers.resource)
		}
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		keys, err := referrers.Of(m.GetNamespace(), m.GetName())
		if err != nil || len(keys) == 0 {
			return nil, err
		}
		named := strings.Join(keys[:min(len(keys), maxNamed)], ", ")
		if more := len(keys) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more, %d in all", more, len(keys))
		}
		return nil, apierrors.NewForbidden(resource, m.GetName(),
			fmt.Errorf("it is used by %s: %s", referrers.resource.Resource, named))
	}
}

package reference

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// NewSelectorTarget is like [NewTarget], for references that select objects by their
// labels: the name of each [Ref] is a label selector, such as app=web or that of
// [labels.Selector.String]. [Exists] wants at least one object to have the labels, in the
// namespace of the reference. An empty selector is no reference; one that cannot be read
// is field.Invalid. The getter is [MetadataBySelector], or one like it.
//
// A check looks at all objects of the informer. [NewReferrers] does not know selectors:
// nothing that they select is kept from deletion.
//
// It is an error, too, if the informer has no store, such as one of several namespaces.
func NewSelectorTarget(resource Resource, informer Informer, get Getter, opts ...RequestOption) (*Target, error) {
	t, err := newTarget(resource, informer, get, opts, func(informer Informer) (lookup, func() bool, error) {
		stored, ok := informer.(interface{ GetStore() cache.Store })
		if !ok {
			return nil, nil, errors.New("the informer has no store, in which labels can be looked up")
		}
		return labelled{stored.GetStore()}, informer.HasSynced, nil
	})
	if t != nil {
		t.selects = true
	}
	return t, err
}

// MetadataBySelector returns a getter that lists the metadata of one object with a label
// selector, which it is given as the name, past all caches. The webhook's user needs the
// verb list. Without a client or a resource the getter is nil, which [NewSelectorTarget]
// refuses.
func MetadataBySelector(client metadata.Interface, resource schema.GroupVersionResource) Getter {
	if client == nil || resource.Version == "" || resource.Resource == "" {
		return nil
	}
	return func(ctx context.Context, namespace, selector string) error {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
		if err == nil && len(list.Items) == 0 {
			err = apierrors.NewNotFound(resource.GroupResource(), selector)
		}
		return err
	}
}

// labelled says of a label selector whether a store has an object for it.
type labelled struct{ cache.Store }

func (l labelled) has(name cache.ObjectName) (found bool, err error) {
	selector, err := labels.Parse(name.Name)
	if err != nil {
		return false, err
	}
	err = cache.ListAll(l.Store, selector, func(obj any) {
		m, err := meta.Accessor(obj)
		found = found || err == nil && m.GetNamespace() == name.Namespace
	})
	return found, err
}

// impossible returns why nothing can have the name, or the labels, whatever the cluster
// holds; it is empty if something can.
func (t *Target) impossible(name cache.ObjectName) string {
	if t.selects {
		if _, err := labels.Parse(name.Name); err != nil {
			return "it is no label selector: " + err.Error()
		}
		name.Name = "any"
	}
	return t.resource.impossible(name)
}

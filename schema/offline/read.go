package offline

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema"
)

// Get returns an object in any version that is served: see [schema.Version.Read]. Without a
// namespace, that is default. The error is the server's own, an *apierrors.StatusError.
func (r *Resource) Get(ctx context.Context, version, namespace, name string) (*schema.Result, error) {
	req, err := r.begin(version, "get", "", nil)
	if err != nil {
		return req.fail(err)
	}
	rec, ok := r.stored(r.key(namespace, name))
	if !ok {
		return req.fail(apierrors.NewNotFound(r.gvr("").GroupResource(), name))
	}
	return req.finish(ctx, rec)
}

// List returns all objects of a namespace, or without one of all namespaces, in any version
// that is served. The result's Object is a list, such as a PizzaList, in the server's
// order.
func (r *Resource) List(ctx context.Context, version, namespace string) (*schema.Result, error) {
	req, err := r.begin(version, "get", "", nil)
	if err != nil {
		return req.fail(err)
	}
	keys, records, latest := r.all()
	items := []any{}
	for i, key := range keys {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		u, err := r.decode(ctx, records[i], version)
		if err != nil {
			return req.fail(err)
		}
		items = append(items, u.Object)
	}
	out := &schema.Result{Warnings: req.warnings}
	if out.Object, err = json.Marshal(map[string]any{
		"apiVersion": r.gvk(version).GroupVersion().String(), "kind": r.crd.Spec.Names.ListKind,
		"metadata": map[string]any{"resourceVersion": formatVersion(latest)}, "items": items,
	}); err != nil {
		return req.fail(err)
	}
	return out, nil
}

// all returns everything at one point in time, sorted.
func (r *Resource) all() (keys []types.NamespacedName, records []record, latest uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Compare(a.String(), b.String()) // as etcd compares its keys
	})
	for _, key := range keys {
		records = append(records, r.objects[key])
	}
	return keys, records, r.version
}

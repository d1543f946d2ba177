package offline

import (
	"bytes"
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

func (r *Resource) stored(key types.NamespacedName) (record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.objects[key]
	return rec, ok
}

// store writes an object if it is still the one that was read, of which version 0 says that
// there was none. Without a text, it deletes it.
func (r *request) store(key types.NamespacedName, text []byte, was uint64) (rec record, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.objects[key].version != was:
		return record{}, false
	case r.dryRun:
		return record{text, was}, true
	}
	r.version++
	rec = record{text, r.version}
	if text == nil {
		delete(r.objects, key)
	} else {
		r.objects[key] = rec
	}
	return rec, true
}

// encode returns what is stored of an object: it is converted to the storage version
// (apiserver/pkg/storage/etcd3/store.go).
func (r *Resource) encode(ctx context.Context, u *unstructured.Unstructured) ([]byte, error) {
	if u.GroupVersionKind().Version != r.storage {
		var err error
		if u, err = r.convert(ctx, u, r.storage); err != nil {
			return nil, err
		}
		if _, err := r.schemas.Coerce(u, pipeline.Coercion{}); err != nil {
			return nil, err
		}
	}
	removeMetadata(u, "resourceVersion", "selfLink")
	return json.Marshal(u.Object)
}

// decode returns a stored object in a version.
func (r *Resource) decode(ctx context.Context, rec record, version string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(rec.text); err != nil {
		return nil, err
	}
	if err := r.schemas.Restore(u); err != nil {
		return nil, err
	}
	u, err := r.convert(ctx, u, version)
	if err != nil {
		return nil, err
	}
	if _, err := r.schemas.Coerce(u, pipeline.Coercion{}); err != nil {
		return nil, err
	}
	if rec.version != 0 {
		u.SetResourceVersion(formatVersion(rec.version))
	}
	return u, nil
}

// finish is the result of a request that succeeds.
func (r *request) finish(ctx context.Context, rec record) (*schema.Result, error) {
	u, err := r.decode(ctx, rec, r.requested)
	if err != nil {
		return r.fail(err)
	}
	out := &schema.Result{Stored: bytes.Clone(rec.text), Warnings: r.warnings}
	if out.Object, err = json.Marshal(u.Object); err != nil {
		return r.fail(err)
	}
	return out, nil
}

func keyOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

func removeMetadata(u *unstructured.Unstructured, names ...string) {
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		for _, name := range names {
			delete(metadata, name)
		}
	}
}

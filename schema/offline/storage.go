package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// record is an object in storage.
type record struct {
	text    []byte // in the version in which it was written, without a resource version
	version uint64 // the resource version; 0 is that of an object which is not stored
}

func (r *Resource) find(key types.NamespacedName) (record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.objects[key]
	return rec, ok
}

// read returns an object of the store, and what it is in the version of the request.
func (r *request) read(ctx context.Context, key types.NamespacedName) (record, *unstructured.Unstructured, error) {
	rec, ok := r.resource.find(key)
	if !ok {
		return rec, nil, apierrors.NewNotFound(r.resource.groupResource(), key.Name)
	}
	u, err := r.resource.decode(ctx, rec, r.version)
	if err != nil && (r.operation != admission.Update || r.dryRun) {
		// All but an update that is not dry use Get, which names the key
		// (apiserver/pkg/registry/generic/registry/dryrun.go and store.go).
		err = apierrors.NewInternalError(corrupt(r.resource.storageKey(key), err))
	}
	return rec, u, err
}

// store writes an object, if the one that is there still has the version that was read; 0
// says that there was none. Without a text, it deletes the object.
func (r *request) store(key types.NamespacedName, text []byte, was uint64) (rec record, ok bool) {
	s := r.resource
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.objects[key].version != was:
		return record{}, false
	case r.dryRun:
		return record{text, was}, true
	}
	s.version++
	rec = record{text, s.version}
	if text == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = rec
	}
	return rec, true
}

// encode returns what is stored of an object: it is converted to the storage version
// (apiserver/pkg/storage/etcd3/store.go).
func (r *request) encode(ctx context.Context, u *unstructured.Unstructured) ([]byte, error) {
	if u.GroupVersionKind().Version != r.resource.storage {
		var err error
		if u, err = r.resource.convert(ctx, u, r.resource.storage); err != nil {
			return nil, err
		}
		if _, err := r.resource.schemas.Coerce(u, pipeline.Coercion{}); err != nil {
			return nil, err
		}
	}
	pipeline.RemoveMetadata(u, "resourceVersion")
	if !r.dryRun {
		pipeline.RemoveMetadata(u, "selfLink")
	}
	return json.Marshal(u.Object)
}

// decode returns a stored object in a version. Its error is corruptObjectError of
// apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go.
func (r *Resource) decode(ctx context.Context, rec record, version string) (*unstructured.Unstructured, error) {
	u, err := r.decodeText(ctx, rec, version)
	if err != nil {
		return nil, fmt.Errorf("object not decodable revision=%d: %v", rec.version, err)
	}
	return u, nil
}

// corrupt is NewCorruptObjError of apiserver/pkg/storage/errors.go.
func corrupt(storageKey string, err error) error {
	return fmt.Errorf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %v", storageKey, err)
}

// storageKey returns the key of an object in etcd, without the server's --etcd-prefix.
func (r *Resource) storageKey(key types.NamespacedName) string {
	return path.Join("/", r.crd.Spec.Group, r.crd.Spec.Names.Plural, key.Namespace, key.Name)
}

// decodeText is [Resource.decode] with the error of the codec.
func (r *Resource) decodeText(ctx context.Context, rec record, version string) (*unstructured.Unstructured, error) {
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

// finish is the result of a write.
func (r *request) finish(ctx context.Context, rec record) (*schema.Result, error) {
	decode := r.resource.decode
	if r.dryRun {
		decode = r.resource.decodeText // copyInto of dryrun.go
	}
	u, err := decode(ctx, rec, r.version)
	if err != nil {
		return nil, err
	}
	if rec.version == 0 {
		u.SetResourceVersion(r.resourceVersion)
	}
	return r.result(rec, u)
}

// result is that of a request which succeeds.
func (r *request) result(rec record, u *unstructured.Unstructured) (*schema.Result, error) {
	text, err := json.Marshal(u.Object)
	return &schema.Result{Object: text, Stored: bytes.Clone(rec.text), Warnings: r.warnings}, err
}

func keyOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

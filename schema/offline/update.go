package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Update replaces the object that has the namespace and name of the one given, in JSON or
// YAML: see [Resource.Create]. The object must have the resourceVersion of the one that it
// replaces. If that is being deleted, and has no finalizers any more, it is deleted, and the
// result says so. An update that changes nothing is not stored, and keeps the
// resourceVersion.
func (r *Resource) Update(ctx context.Context, version string, object []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.put(ctx, version, object, "", opts)
}

// UpdateStatus is [Resource.Update] by way of the status subresource: nothing but the status
// changes. If the version has no such subresource, the error is NotFound.
func (r *Resource) UpdateStatus(ctx context.Context, version string, object []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.put(ctx, version, object, "status", opts)
}

func (r *Resource) put(ctx context.Context, version string, object []byte, subresource string, opts []RequestOption) (*schema.Result, error) {
	req, err := r.begin(version, "put", admission.Update, opts)
	if err != nil {
		return req.fail(err)
	}
	req.subresource = subresource
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	_ = yaml.Unmarshal(object, &named) // the request says what is wrong with it
	return req.update(ctx, r.key(named.Metadata.Namespace, named.Metadata.Name), func(func() (*unstructured.Unstructured, error)) ([]byte, error) { return object, nil })
}

// key is that of the object of a request.
func (r *Resource) key(namespace, name string) types.NamespacedName {
	switch {
	case !r.namespaced():
		namespace = ""
	case namespace == "":
		namespace = metav1.NamespaceDefault
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// body makes the object that a request sends. A patch reads the old one for that.
type body func(read func() (*unstructured.Unstructured, error)) ([]byte, error)

// update is GuaranteedUpdate of the storage: it starts again if somebody else was faster.
func (r *request) update(ctx context.Context, key types.NamespacedName, b body) (*schema.Result, error) {
	r.namespace = key.Namespace
	for {
		out, again, err := r.tryUpdate(ctx, key, b)
		if err != nil {
			return r.fail(err)
		}
		if !again {
			return out, nil
		}
	}
}

func (r *request) tryUpdate(ctx context.Context, key types.NamespacedName, b body) (_ *schema.Result, again bool, _ error) {
	var was record
	var old *unstructured.Unstructured
	read := func() (_ *unstructured.Unstructured, err error) {
		if old == nil {
			was, old, err = r.read(ctx, key)
		}
		return old, err
	}
	object, err := b(read)
	if err != nil {
		return nil, false, err
	}
	write := r.definition.Version(r.requested).Update
	if r.subresource == "status" {
		write = r.definition.Version(r.requested).UpdateStatus
	}
	out, err := write(ctx, object, nil, r.staged(func(ctx context.Context, u *unstructured.Unstructured) error {
		return serverError(r.mutate(ctx, r.attributes(u, old, key.Name)))
	}), func(s *pipeline.Settings) { s.Key, s.Old = key, read })
	u, err := r.took(out, err)
	if err != nil {
		return nil, false, err
	}
	u.SetResourceVersion(old.GetResourceVersion())
	if err := r.admitted(ctx, r.attributes(u, old, key.Name)); err != nil {
		return nil, false, err
	}
	if out.Deleted {
		// The answer is what the request would have stored (deleteWithoutFinalizers of
		// registry/generic/registry/store.go).
		if _, ok := r.store(key, nil, was.version); !ok {
			return nil, true, nil
		}
		text, err := json.Marshal(u.Object)
		return &schema.Result{Object: text, Warnings: r.warnings, Deleted: true}, false, err
	}
	text, err := r.encode(ctx, u)
	if err != nil {
		return nil, false, err
	}
	rec := was
	if !bytes.Equal(text, was.text) {
		var ok bool
		if rec, ok = r.store(key, text, was.version); !ok {
			return nil, true, nil
		}
	}
	result, err := r.finish(ctx, rec)
	return result, false, err
}

// read returns an object of the storage, and what it is in the version of the request.
func (r *request) read(ctx context.Context, key types.NamespacedName) (record, *unstructured.Unstructured, error) {
	if key.Name == "" {
		return record{}, nil, fmt.Errorf("%w: the object to update has no name", errHere)
	}
	rec, ok := r.stored(key)
	if !ok {
		return rec, nil, apierrors.NewNotFound(r.gvr("").GroupResource(), key.Name)
	}
	u, err := r.decode(ctx, rec, r.requested)
	return rec, u, err
}

package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
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
	req, err := r.begin(ctx, version, admission.Update, opts)
	if err != nil {
		return req.fail(err)
	}
	req.subresource = subresource
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := yaml.Unmarshal(object, &named); err != nil || named.Metadata.Name == "" {
		if err := req.decodes(ctx, object); err != nil {
			return req.fail(err)
		}
		return req.fail(fmt.Errorf("%w: the object to update has no name", errHere))
	}
	key := r.key(named.Metadata.Namespace, named.Metadata.Name)
	if _, ok := r.stored(key); !ok {
		if err := req.decodes(ctx, object); err != nil {
			return req.fail(err)
		}
	}
	return req.update(ctx, key, func(*unstructured.Unstructured) ([]byte, error) { return object, nil })
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

// decodes returns the error of a body that cannot be read.
func (r *request) decodes(ctx context.Context, object []byte) error {
	enough := errors.New("enough")
	out, err := r.stages.Create(ctx, r.requested, object, r.through(func(context.Context, *unstructured.Unstructured) error { return enough })...)
	if errors.Is(err, enough) {
		err = nil
	}
	r.warn(out.Warnings...)
	return err
}

// update is GuaranteedUpdate of the storage: it starts again if somebody else was faster.
func (r *request) update(ctx context.Context, key types.NamespacedName, body func(old *unstructured.Unstructured) ([]byte, error)) (*schema.Result, error) {
	r.namespace = key.Namespace
	for {
		out, again, err := r.tryUpdate(ctx, key, body)
		if err != nil {
			return r.fail(err)
		}
		if !again {
			return out, nil
		}
	}
}

func (r *request) tryUpdate(ctx context.Context, key types.NamespacedName, body func(old *unstructured.Unstructured) ([]byte, error)) (_ *schema.Result, again bool, _ error) {
	was, ok := r.stored(key)
	if !ok {
		return nil, false, apierrors.NewNotFound(r.gvr("").GroupResource(), key.Name)
	}
	old, err := r.decode(ctx, was, r.requested)
	if err != nil {
		return nil, false, err
	}
	object, err := body(old)
	if err != nil {
		return nil, false, err
	}
	out, err := r.stages.Update(ctx, r.requested, object, old.Object, r.subresource == "status", r.through(func(ctx context.Context, u *unstructured.Unstructured) error {
		return serverError(r.mutate(ctx, r.attributes(u, old, key.Name)))
	})...)
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
		if rec, ok = r.store(key, text, was.version); !ok {
			return nil, true, nil
		}
	}
	result, err := r.finish(ctx, rec)
	return result, false, err
}

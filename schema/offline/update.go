package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Update replaces the object that has the namespace and the name of the one given, in JSON
// or YAML: see [Resource.Create]. The new object must have the resourceVersion of the old
// one. An update that changes nothing is not stored, and the resourceVersion stays.
//
// If the old object is being deleted, and the new one has no finalizers, the object is
// deleted: the result's Deleted is true then.
func (r *Resource) Update(ctx context.Context, version string, object []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.put(ctx, version, object, "", opts)
}

// UpdateStatus is [Resource.Update] by way of the status subresource: nothing but the status
// changes. If the version has no such subresource, the error is NotFound.
func (r *Resource) UpdateStatus(ctx context.Context, version string, object []byte, opts ...RequestOption) (*schema.Result, error) {
	return r.put(ctx, version, object, "status", opts)
}

func (r *Resource) put(ctx context.Context, version string, object []byte, subresource string, opts []RequestOption) (*schema.Result, error) {
	req := &request{version: version, subresource: subresource, operation: admission.Update}
	return r.serve(ctx, req, "put", opts, func(ctx context.Context) (*schema.Result, error) {
		// The URL of a real request has these. If the object cannot be read, the answer says so.
		var named struct {
			Metadata struct{ Namespace, Name string }
		}
		_ = yaml.Unmarshal(object, &named)
		if r.namespaced() {
			req.namespace = named.Metadata.Namespace
		}
		w := &replacement{request: req, body: func(context.Context) ([]byte, error) { return object, nil }}
		w.key, _ = req.key(named.Metadata.Name)
		return w.run(ctx)
	})
}

// replacement is a request that replaces an object: an update or a patch.
type replacement struct {
	*request
	key     types.NamespacedName
	body    func(ctx context.Context) ([]byte, error) // returns the object to be written
	decoded func(err error) error                     // see [pipeline.Settings]; nil for an update

	// of the attempt
	was record
	old *unstructured.Unstructured // nil until it is read
}

// run is GuaranteedUpdate of the storage.
func (w *replacement) run(ctx context.Context) (*schema.Result, error) {
	return w.retry(ctx, w.key, func() (*schema.Result, bool, error) { return w.try(ctx) })
}

func (w *replacement) try(ctx context.Context) (_ *schema.Result, again bool, _ error) {
	w.was, w.old = record{}, nil
	object, err := w.body(ctx)
	if err != nil {
		return nil, false, err
	}
	write := w.resource.definition.Version(w.version).Update
	if w.subresource == "status" {
		write = w.resource.definition.Version(w.version).UpdateStatus
	}
	out, err := write(ctx, object, nil, w.untilValidation(w.mutate), func(s *pipeline.Settings) {
		s.Key, s.Decoded = w.key, w.decoded
		s.Old = func() (*unstructured.Unstructured, error) { return w.read(ctx) }
	})
	u, err := w.prepared(out, err)
	if err != nil {
		return nil, false, err
	}
	u.SetResourceVersion(w.old.GetResourceVersion())
	if err := w.validate(ctx, w.attributes(u, w.old, w.key.Name)); err != nil {
		return nil, false, err
	}
	if out.Deleted {
		return w.delete(u)
	}
	text, err := w.encode(ctx, u)
	if err != nil {
		return nil, false, err
	}
	rec := w.was
	if !bytes.Equal(text, w.was.text) {
		var ok bool
		if rec, ok = w.store(w.key, text, w.was.version); !ok {
			return nil, true, nil
		}
	}
	result, err := w.finish(ctx, rec)
	return result, false, err
}

// read returns the old object, in the version of the request.
func (w *replacement) read(ctx context.Context) (_ *unstructured.Unstructured, err error) {
	switch {
	case w.key.Name == "":
		return nil, ownError(errors.New("the object to update has no name"))
	case w.old == nil:
		w.was, w.old, err = w.request.read(ctx, w.key)
	}
	return w.old, err
}

// mutate is mutating admission.
func (w *replacement) mutate(ctx context.Context, u *unstructured.Unstructured) error {
	return w.mutateObject(ctx, u, w.old, w.key.Name)
}

// delete deletes an object whose deletion waited for this update. The answer is what the
// update would have stored (deleteWithoutFinalizers of registry/generic/registry/store.go).
func (w *replacement) delete(u *unstructured.Unstructured) (_ *schema.Result, again bool, _ error) {
	if _, ok := w.store(w.key, nil, w.was.version); !ok {
		return nil, true, nil
	}
	text, err := json.Marshal(u.Object)
	return &schema.Result{Object: text, Warnings: w.warnings, Deleted: true}, false, err
}

package offline

import (
	"context"
	"errors"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/crdkit/crdkit/schema"
)

// Create creates an object, given in JSON or YAML, in a version that is served. Its
// namespace is the one in the object, or else default. The result has the object as the
// server answers it, in the same version, and as it is stored; the error is the server's
// own, an *apierrors.StatusError. The result is not nil even so, and has the warnings.
//
// The steps are: decode, prune and default; mutating webhooks; validation by the schema;
// validating webhooks; conversion to the storage version; storage (see
// [schema.Version.Create], and apiserver/pkg/registry/generic/registry/store.go).
//
// The metadata are all there but managedFields. A name that is generated ends in bbbbb, the
// next one in bbbbc.
func (r *Resource) Create(ctx context.Context, version string, object []byte, opts ...RequestOption) (*schema.Result, error) {
	req, err := r.begin(version, "post", admission.Create, opts)
	if err != nil {
		return req.fail(err)
	}
	var given string // the resource version in the object
	u, err := req.took(r.definition.Version(version).Create(ctx, object, req.staged(func(ctx context.Context, u *unstructured.Unstructured) error {
		req.namespace = u.GetNamespace()
		if err := req.mutate(ctx, req.attributes(u, nil, u.GetName())); err != nil {
			return serverError(err)
		}
		if generate := u.GetGenerateName(); generate != "" && u.GetName() == "" {
			u.SetName(r.generateName(generate))
		}
		given = u.GetResourceVersion()
		removeMetadata(u, "resourceVersion") // the storage is asked last
		return nil
	})))
	if err != nil {
		return req.fail(err)
	}
	u.SetUID(r.uid())
	u.SetCreationTimestamp(metav1.NewTime(r.now()))
	if given != "" {
		u.SetResourceVersion(given)
	}
	if err := req.admitted(ctx, req.attributes(u, nil, u.GetName())); err != nil {
		return req.fail(err)
	}
	if n, err := strconv.ParseUint(given, 10, 64); err == nil && n != 0 {
		// apiserver/pkg/storage/errors.go, ErrResourceVersionSetOnCreate.
		return req.fail(errors.New("resourceVersion should not be set on objects to be created"))
	}
	text, err := r.encode(ctx, u)
	if err != nil {
		return req.fail(err)
	}
	rec, ok := req.store(keyOf(u), text, 0)
	if !ok {
		return req.fail(r.alreadyExists(u))
	}
	return req.finish(ctx, rec)
}

// alreadyExists is the error of Create in registry/generic/registry/store.go.
func (r *Resource) alreadyExists(u *unstructured.Unstructured) error {
	err := apierrors.NewAlreadyExists(r.gvr("").GroupResource(), u.GetName())
	existing := &unstructured.Unstructured{}
	if rec, ok := r.stored(keyOf(u)); ok && existing.UnmarshalJSON(rec.text) == nil && existing.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// generateName is GenerateName of apiserver/pkg/storage/names/generate.go, which counts
// instead of guessing.
func (r *Resource) generateName(base string) string {
	const letters, most = "bcdfghjklmnpqrstvwxz2456789", 58
	r.mu.Lock()
	n := r.names
	r.names++
	r.mu.Unlock()
	suffix := []byte("bbbbb")
	for i := len(suffix) - 1; i >= 0; i-- {
		suffix[i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return base[:min(len(base), most)] + string(suffix)
}

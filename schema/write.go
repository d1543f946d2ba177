package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// Create does what the server does when an object is created in this version. The object is
// JSON or YAML; what begins with { is JSON, and of several documents of YAML only the first
// is read. It is decoded, pruned and defaulted; its status is taken away if that is a
// subresource; it is validated, converted to the storage version, and read back.
//
// The error is the server's own, an *apierrors.StatusError: BadRequest or
// RequestEntityTooLarge if the object cannot be decoded, Invalid if it has problems, and one
// without a reason if the object has a resourceVersion. Not the server's are the errors that the
// definition has no such version, or does not serve it (around a NotFound), and that the context
// has ended while rules were run. The result is never nil: with an error, it has the warnings.
//
// The metadata is what the server makes of it, with generation 1, but has no uid,
// creationTimestamp, resourceVersion and managedFields. A generated name ends in xxxxx.
//
// (apiserver/pkg/endpoints/handlers/create.go, apiserver/pkg/registry/rest/create.go,
// apiserver/pkg/registry/generic/registry/store.go)
func (v *Version) Create(ctx context.Context, object []byte, opts ...Option) (*Result, error) {
	ctx, r, err := v.begin(ctx, "post", opts)
	if err != nil {
		return r.fail(err)
	}
	u, err := r.decode(object, "CreateOptions")
	if err != nil {
		return r.fail(err)
	}
	namespace := cmp.Or(r.namespace, v.defaultNamespace(u))
	if err := v.setNamespace(u, namespace); err != nil {
		return r.fail(err)
	}
	r.dedupOwnerReferences(u)
	u.SetManagedFields(nil) // the server makes its own
	rest.WipeObjectMetaSystemFields(u)
	rest.FillObjectMetaSystemFields(u)
	s := v.strategy(false)
	if u.GetGenerateName() != "" && u.GetName() == "" {
		u.SetName(s.GenerateName(u.GetGenerateName()))
	}
	ctx = genericapirequest.WithNamespace(ctx, namespace)
	if err := rest.BeforeCreate(s, ctx, u); err != nil {
		return r.fail(cmp.Or(ctx.Err(), err)) // a rule that is interrupted is not a fault of the object
	}
	if version, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(u); err == nil && version != 0 {
		return r.fail(internalError(storage.ErrResourceVersionSetOnCreate.Error()))
	}
	u.SetResourceVersion("")
	// Two objects that are created alike are stored alike here.
	u.SetUID("")
	u.SetCreationTimestamp(metav1.Time{})
	return r.finish(ctx, u)
}

// setNamespace gives an object the namespace of the request. The error is that it has another one.
func (v *Version) setNamespace(o metav1.Object, namespace string) error {
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(rest.ExpectedNamespaceForScope(namespace, v.namespaced()), o)
}

// dedupOwnerReferences is dedupOwnerReferencesAndAddWarning of
// apiserver/pkg/endpoints/handlers/rest.go.
func (r *request) dedupOwnerReferences(u *unstructured.Unstructured) {
	var kept []metav1.OwnerReference
	var duplicates []string
	for _, ref := range u.GetOwnerReferences() {
		if slices.ContainsFunc(kept, func(k metav1.OwnerReference) bool { return apiequality.Semantic.DeepEqual(k, ref) }) {
			duplicates = append(duplicates, string(ref.UID))
		} else {
			kept = append(kept, ref)
		}
	}
	if len(duplicates) > 0 {
		r.AddWarning("", fmt.Sprintf(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v",
			strings.Join(duplicates, ", ")))
		u.SetOwnerReferences(kept)
	}
}

// Update does what the server does when an object replaces an old one. The old one is as it
// is stored, or as it was read; its name and namespace are those of the request. Both are
// JSON or YAML. See [Version.Create] for the steps, the errors and the result. A problem that the
// old object had already, in a part that has not changed, is forgiven or made a warning
// (validation ratcheting, KEP-4008).
//
// The uid and creationTimestamp are those of the old object, and the generation goes up
// where more than metadata changes. The result has no resourceVersion and managedFields.
//
// If the old object has a resourceVersion, the new one must have the same: without one it is
// Invalid, and with another one there is a Conflict. If both have a uid, these must be the same.
// A field that the old object does not have is not compared, so that a test needs neither. Without a
// namespace, an old object of a kind that has them is taken to be in the default one.
//
// (apiserver/pkg/endpoints/handlers/update.go, apiserver/pkg/registry/rest/update.go,
// apiserver/pkg/registry/generic/registry/store.go)
func (v *Version) Update(ctx context.Context, object, old []byte, opts ...Option) (*Result, error) {
	return v.update(ctx, object, old, false, opts)
}

// UpdateStatus is [Version.Update] by way of the status subresource: nothing but the
// status changes. If the version has no such subresource, the error is NotFound.
func (v *Version) UpdateStatus(ctx context.Context, object, old []byte, opts ...Option) (*Result, error) {
	return v.update(ctx, object, old, true, opts)
}

func (v *Version) update(ctx context.Context, object, stored []byte, status bool, opts []Option) (*Result, error) {
	ctx, r, err := v.begin(ctx, "put", opts)
	if err != nil {
		return r.fail(err)
	}
	old, err := v.definition.parseStored(stored)
	if err != nil {
		return r.fail(err)
	}
	old.SetNamespace(v.defaultNamespace(old))
	namespace, name := old.GetNamespace(), old.GetName()
	if status && !r.hasStatus {
		return r.fail(apierrors.NewNotFound(r.resource(), name))
	}
	u, err := r.decode(object, "UpdateOptions")
	if err != nil {
		return r.fail(err)
	}
	if err := v.setNamespace(u, namespace); err != nil {
		return r.fail(err)
	}
	if err := checkName(u, name); err != nil {
		return r.fail(err)
	}
	r.dedupOwnerReferences(u)
	if err := r.restore(ctx, old); err != nil {
		return r.fail(err)
	}
	if err := r.checkUID(u, old); err != nil {
		return r.fail(err)
	}
	u.SetManagedFields(nil) // the server makes its own
	old.SetManagedFields(nil)
	// An old object that a server has stored has these.
	if old.GetUID() == "" {
		u.SetUID("")
	}
	if created := old.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.Time{})
	}
	if err := r.checkResourceVersion(u, old); err != nil {
		return r.fail(err)
	}
	if err := beforeUpdate(ctx, r.strategy(status), namespace, u, old); err != nil {
		return r.fail(cmp.Or(ctx.Err(), err))
	}
	if err := (storage.APIObjectVersioner{}).PrepareObjectForStorage(u); err != nil {
		return r.fail(err)
	}
	return r.finish(ctx, u)
}

// checkName returns an error if an object has another name than the request
// (apiserver/pkg/endpoints/handlers/rest.go, checkName).
func checkName(o metav1.Object, name string) error {
	switch own := o.GetName(); own {
	case name:
		return nil
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", name))
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", own, name))
	}
}

// checkUID checks the precondition that a uid in an object makes
// (apiserver/pkg/registry/rest/update.go, Preconditions).
func (r *request) checkUID(u, old *unstructured.Unstructured) error {
	if u.GetUID() == "" || old.GetUID() == "" {
		return nil
	}
	resource := r.resource()
	key := path.Join("/registry", resource.Group, resource.Resource, old.GetNamespace(), old.GetName())
	if err := storage.NewUIDPreconditions(string(u.GetUID())).Check(key, old); err != nil {
		return apierrors.NewConflict(resource, old.GetName(), err)
	}
	return nil
}

// checkResourceVersion is the optimistic lock of registry/generic/registry/store.go. An old
// object without a version gets one that fits.
func (r *request) checkResourceVersion(u, old *unstructured.Unstructured) error {
	var versioner storage.APIObjectVersioner
	existing, err := versioner.ObjectResourceVersion(old)
	if err != nil {
		return internalError(err.Error())
	}
	if existing == 0 {
		setResourceVersion(u, old)
		return nil
	}
	version, err := versioner.ObjectResourceVersion(u)
	switch {
	case err != nil:
		return internalError(err.Error())
	case version == 0:
		kind := schema.GroupKind{Group: r.resource().Group, Kind: r.resource().Resource}
		return apierrors.NewInvalid(kind, old.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), version, "must be specified for an update")})
	case version != existing:
		return apierrors.NewConflict(r.resource(), old.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// setResourceVersion gives both objects of an update the same version.
func setResourceVersion(u, old *unstructured.Unstructured) {
	old.SetResourceVersion("1")
	u.SetResourceVersion("1")
}

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

// Create returns the result of a create request in this version. The object is JSON if its first
// character is {, and otherwise YAML, of which only the first document is read.
//
// The object is decoded, pruned and defaulted, loses its status if that is a subresource, and is
// then validated, converted to the storage version, and read back.
//
// An error of the server is an *apierrors.StatusError:
//
//   - BadRequest or RequestEntityTooLarge, if the object cannot be decoded.
//   - Invalid, if the object has problems.
//   - an error without a reason, if the object has a resourceVersion.
//
// Create returns other errors if the CRD lacks the version, if it does not serve the version
// (wrapping a NotFound), or if the context is done while rules run. The result is never nil,
// because it also has the warnings of a request that fails.
//
// The metadata is as on the server, with generation 1, but without uid, creationTimestamp,
// resourceVersion and managedFields. A generated name ends in xxxxx.
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
	// Two equal create requests store equal objects here.
	u.SetUID("")
	u.SetCreationTimestamp(metav1.Time{})
	return r.finish(ctx, u)
}

// setNamespace gives an object the namespace of the request, or returns an error if it has another
// one.
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

// Update returns the result of an update request in this version, which replaces old by object. The
// old object is the stored object, or the object in the response to a read, and gives the request
// its name and namespace. Both objects are JSON or YAML. See [Version.Create] for the steps, the
// errors and the result.
//
// A problem in an unchanged part of the old object is dropped or becomes a warning (validation
// ratcheting, KEP-4008).
//
// The result has the uid and creationTimestamp of the old object, and no resourceVersion or
// managedFields. Its generation is incremented if more than metadata changes.
//
// If the old object has a resourceVersion, the new object must have the same one; without one the
// error is Invalid, and with another one it is Conflict. If both objects have a uid, the uids must
// be equal. Tests can leave out both fields, because a field that the old object lacks is not
// compared. If the old object of a namespaced kind has no namespace, its namespace is default.
//
// (apiserver/pkg/endpoints/handlers/update.go, apiserver/pkg/registry/rest/update.go,
// apiserver/pkg/registry/generic/registry/store.go)
func (v *Version) Update(ctx context.Context, object, old []byte, opts ...Option) (*Result, error) {
	return v.update(ctx, object, old, false, opts)
}

// UpdateStatus returns the result of an update of the status subresource: only the status
// changes. See [Version.Update] for the arguments. If the version has no status subresource, the
// error is NotFound.
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

// checkName returns an error if the name of an object differs from that of the request
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

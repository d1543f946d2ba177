package schema

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Update does what the server does when an object replaces an old one. The old one is as it
// is stored, or as it was read; its name and namespace are those of the request. Both are
// JSON or YAML. See [Version.Create] for the steps and the result. A fault that the old
// object had already, in a part that has not changed, is forgiven or made a warning
// (validation ratcheting, KEP-4008).
//
// The uid and creationTimestamp are those of the old object, and the generation goes up
// where more than metadata changes. The result has no resourceVersion and managedFields.
//
// If the old object has a resourceVersion, the new one must have the same: without one it
// is Invalid ("metadata.resourceVersion: … must be specified for an update"), with another
// one there is a Conflict. If both have a uid, these must be the same. What the old object
// does not have is not compared, so that a test needs neither. One without a namespace, of a
// kind that has them, is taken to be in the default one. The other errors are those of
// Create.
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
	key, read := r.Key, r.Old
	if !r.Staged {
		old, err := v.parseOld(stored)
		if err != nil {
			return r.fail(err)
		}
		key = keyOf(old)
		read = func() (*unstructured.Unstructured, error) { return old, v.restore(old) }
	}
	if status && !r.hasStatus {
		return r.fail(apierrors.NewNotFound(r.resource(), key.Name))
	}
	if err := r.checkOptions("UpdateOptions"); err != nil {
		return r.fail(err)
	}
	u, err := r.decode(object)
	if err != nil {
		return r.fail(err)
	}
	if err := checkPlace(u, key); err != nil {
		return r.fail(err)
	}
	if r.Decoded == nil { // see DuplicateOwnerReferencesAfterMutatingAdmissionWarningFormat of handlers/rest.go
		r.dedupOwnerReferences(u, "")
	}
	old, err := read()
	if err != nil {
		return r.fail(err)
	}
	if r.Staged {
		old = old.DeepCopy()
	}
	if r.Decoded == nil {
		if err := r.checkUID(u.GetUID(), old); err != nil {
			return r.fail(err)
		}
	}
	return r.replace(ctx, u, old, status)
}

// parseOld decodes the old object of a write.
func (v *Version) parseOld(stored []byte) (*unstructured.Unstructured, error) {
	old, err := v.definition.parseStored(stored)
	if err != nil {
		return nil, err
	}
	old.Object = v.inNamespace(old.Object)
	return old, nil
}

// replace stores an object instead of the old one: Update of registry/generic/registry/store.go.
// It changes both.
func (r *request) replace(ctx context.Context, u, old *unstructured.Unstructured, status bool) (*Result, error) {
	namespace := old.GetNamespace()
	pipeline.RemoveMetadata(u, "managedFields") // the server makes its own
	pipeline.RemoveMetadata(old, "managedFields")
	// An old object that a server has stored has these.
	if old.GetUID() == "" {
		pipeline.RemoveMetadata(u, "uid")
	}
	if created := old.GetCreationTimestamp(); created.IsZero() {
		pipeline.RemoveMetadata(u, "creationTimestamp")
	}
	if err := r.admit(ctx, u); err != nil {
		return r.fail(err)
	}
	if err := r.checkResourceVersion(u, old); err != nil {
		return r.fail(err)
	}
	if err := setNamespace(u, namespace); err != nil {
		return r.fail(err)
	}
	r.prepare(u, old, status)
	errs, err := inTime(ctx, func(ctx context.Context) field.ErrorList { return r.validateReplacement(ctx, u, old, status) })
	if err != nil {
		return r.fail(err)
	}
	if len(errs) > 0 {
		return r.fail(apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), errs))
	}
	if !status {
		r.warnOfFinalizers(u.GetFinalizers(), old.GetFinalizers())
	}
	// apiserver/pkg/storage/api_object_versioner.go, PrepareObjectForStorage.
	if pipeline.RemoveMetadata(u, "resourceVersion"); !r.DryRun {
		pipeline.RemoveMetadata(u, "selfLink")
	}
	out, err := r.finish(u)
	if err == nil {
		out.Deleted = deletes(u, old)
	}
	return out, err
}

// prepare is BeforeUpdate of registry/rest/update.go, until it validates.
func (v *Version) prepare(u, old *unstructured.Unstructured, status bool) {
	u.SetGeneration(old.GetGeneration())
	if status {
		v.prepareStatus(u, old)
	} else {
		v.prepareUpdate(u, old)
	}
	if u.GetUID() == "" {
		u.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		u.SetCreationTimestamp(created)
	}
	if deleted := old.GetDeletionTimestamp(); !deleted.IsZero() {
		u.SetDeletionTimestamp(deleted)
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && u.GetDeletionGracePeriodSeconds() == nil {
		u.SetDeletionGracePeriodSeconds(grace)
	}
}

// prepareUpdate is PrepareForUpdate of customresource/strategy.go.
func (v *Version) prepareUpdate(u, old *unstructured.Unstructured) {
	if v.hasStatus {
		if status, ok := old.Object["status"]; ok {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
	}
	if !apiequality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(old)) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

// prepareStatus is PrepareForUpdate of customresource/status_strategy.go.
func (v *Version) prepareStatus(u, old *unstructured.Unstructured) {
	status, ok := u.Object["status"]
	u.Object = old.DeepCopy().Object
	if ok {
		u.Object["status"] = status
	} else {
		delete(u.Object, "status")
	}
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	m := make(map[string]any, len(u.Object))
	for name, value := range u.Object {
		if name != "metadata" {
			m[name] = value
		}
	}
	return m
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// checkPlace says whether an object has the namespace and the name of the request.
func checkPlace(o metav1.Object, key types.NamespacedName) error {
	if err := setNamespace(o, key.Namespace); err != nil {
		return err
	}
	// checkName of apiserver/pkg/endpoints/handlers/rest.go
	switch own, name := o.GetName(), key.Name; own {
	case name:
		return nil
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: %v", name, errors.New("name must be provided")))
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", own, name))
	}
}

// checkUID is the precondition that a uid in the object makes
// (apiserver/pkg/registry/rest/update.go, Preconditions, and apiserver/pkg/storage/interfaces.go,
// Check).
func (r *request) checkUID(uid types.UID, old *unstructured.Unstructured) error {
	if uid == "" || old.GetUID() == "" || uid == old.GetUID() {
		return nil
	}
	key := "/" + r.resource().Group + "/" + r.resource().Resource + "/"
	if r.namespaced() {
		key += old.GetNamespace() + "/"
	}
	if !r.DryRun {
		key = "/registry" + key
	}
	return apierrors.NewConflict(r.resource(), old.GetName(), fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
		key+old.GetName(), uid, old.GetUID()))
}

// checkResourceVersion is the optimistic lock of registry/generic/registry/store.go. An old
// object without a version gets one that fits.
func (r *request) checkResourceVersion(u, old *unstructured.Unstructured) error {
	existing, err := resourceVersion(old)
	if err != nil {
		return pipeline.InternalError(err.Error())
	}
	if existing == 0 {
		giveResourceVersion(u, old)
		return nil
	}
	version, err := resourceVersion(u)
	switch {
	case err != nil:
		return pipeline.InternalError(err.Error())
	case version == 0:
		kind := schema.GroupKind{Group: r.resource().Group, Kind: r.resource().Resource}
		return apierrors.NewInvalid(kind, old.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), version, "must be specified for an update")})
	case version != existing:
		return apierrors.NewConflict(r.resource(), old.GetName(), errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// giveResourceVersion gives both objects of an update one, where the old one has none.
func giveResourceVersion(u, old *unstructured.Unstructured) {
	old.SetResourceVersion("1")
	u.SetResourceVersion("1")
}

// resourceVersion is ObjectResourceVersion of apiserver/pkg/storage/api_object_versioner.go.
func resourceVersion(u *unstructured.Unstructured) (uint64, error) {
	if u.GetResourceVersion() == "" {
		return 0, nil
	}
	return strconv.ParseUint(u.GetResourceVersion(), 10, 64)
}

// deletes is ShouldDeleteDuringUpdate of registry/generic/registry/store.go.
func deletes(u, old *unstructured.Unstructured) bool {
	grace := old.GetDeletionGracePeriodSeconds()
	return len(u.GetFinalizers()) == 0 && old.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0)
}

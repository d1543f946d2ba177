package schema

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/schema/internal/pipeline"
)

// Create does what the server does when an object is created in this version. The object is
// JSON or YAML; what begins with { is JSON, and of several documents of YAML only the first
// is read. It is decoded, pruned and defaulted; [Mutate] is
// called; its status is taken away if that is a subresource; it is validated, converted to
// the storage version, and read back.
//
// The error is the server's own, an *apierrors.StatusError: BadRequest or
// RequestEntityTooLarge if the object cannot be decoded, Invalid if it has faults, Timeout
// after 34 seconds or when the context ends, and one without a reason if the object has a
// resourceVersion. Two errors are not the server's: that the definition has no such version,
// and what [Mutate] returns. That a version is not served is a NotFound inside of another
// error. The result is never nil: with an error, it has the warnings.
//
// The metadata are the server's, with generation 1, but for what only a server knows: the
// result has no uid, creationTimestamp, resourceVersion and managedFields, whatever the
// object has. Where a name is generated, it ends in xxxxx.
//
// (apiserver/pkg/endpoints/handlers/create.go, apiserver/pkg/registry/rest/create.go,
// apiserver/pkg/registry/generic/registry/store.go)
func (v *Version) Create(ctx context.Context, object []byte, opts ...Option) (*Result, error) {
	ctx, r, u, err := v.receive(ctx, object, opts)
	if err != nil {
		return r.fail(err)
	}
	// WipeObjectMetaSystemFields of registry/rest/meta.go; selfLink is of the past.
	pipeline.RemoveMetadata(u, "creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
	namespace := r.requestNamespace(u)
	if err := setNamespace(u, namespace); err != nil {
		return r.fail(err)
	}
	r.dedupOwnerReferences(u, "")
	pipeline.RemoveMetadata(u, "managedFields") // the server makes its own
	if err := r.admit(ctx, u); err != nil {
		return r.fail(err)
	}
	// Admission does not decide on what is the system's (FillObjectMetaSystemFields).
	pipeline.RemoveMetadata(u, "creationTimestamp", "uid")
	if generate := u.GetGenerateName(); generate != "" && u.GetName() == "" {
		// apiserver/pkg/storage/names/generate.go, with a suffix that is no secret.
		u.SetName(generate[:min(len(generate), 58)] + "xxxxx")
	}
	if err := setNamespace(u, namespace); err != nil {
		return r.fail(err)
	}
	if v.hasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
	errs, err := inTime(ctx, func(ctx context.Context) field.ErrorList { return v.validateCreate(ctx, u) })
	if err != nil {
		return r.fail(err)
	}
	if len(errs) > 0 {
		return r.fail(apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(), errs))
	}
	r.warnOfFinalizers(u.GetFinalizers(), nil)
	if version, err := resourceVersion(u); err == nil && version != 0 && !r.DryRun {
		// apiserver/pkg/storage/errors.go, ErrResourceVersionSetOnCreate.
		return r.fail(pipeline.InternalError("resourceVersion should not be set on objects to be created"))
	}
	pipeline.RemoveMetadata(u, "resourceVersion")
	return r.finish(u)
}

// requestNamespace is the namespace in the URL of a create request.
func (r *request) requestNamespace(u *unstructured.Unstructured) string {
	switch {
	case !r.namespaced():
		return ""
	case r.Namespace != "":
		return r.Namespace
	case u.GetNamespace() != "":
		return u.GetNamespace()
	}
	return metav1.NamespaceDefault
}

// setNamespace is EnsureObjectNamespaceMatchesRequestNamespace of registry/rest/meta.go.
func setNamespace(o metav1.Object, namespace string) error {
	switch own := o.GetNamespace(); {
	case own == namespace:
	case own == "" || namespace == "":
		o.SetNamespace(namespace)
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// admit is mutating admission.
func (r *request) admit(ctx context.Context, u *unstructured.Unstructured) error {
	if r.Mutate == nil {
		return nil
	}
	if err := r.Mutate(ctx, u.Object); err != nil {
		return err
	}
	if !r.Staged {
		r.definition.schemas.SetDefaults(u)
	}
	r.dedupOwnerReferences(u, " after mutating admission happens")
	return nil
}

// dedupOwnerReferences is dedupOwnerReferencesAndAddWarning of
// apiserver/pkg/endpoints/handlers/rest.go.
func (r *request) dedupOwnerReferences(u *unstructured.Unstructured, when string) {
	// The server compares each with each; there may be many.
	type key struct {
		apiVersion, kind, name string
		uid                    types.UID
		controller, block      string
	}
	var kept []metav1.OwnerReference
	var twice []string
	seen := map[key]bool{}
	for _, ref := range u.GetOwnerReferences() {
		k := key{ref.APIVersion, ref.Kind, ref.Name, ref.UID, pointed(ref.Controller), pointed(ref.BlockOwnerDeletion)}
		if seen[k] {
			twice = append(twice, string(ref.UID))
			continue
		}
		seen[k] = true
		kept = append(kept, ref)
	}
	if len(twice) > 0 {
		r.AddWarning("", fmt.Sprintf(".metadata.ownerReferences contains duplicate entries%s; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v",
			when, strings.Join(twice, ", ")))
		u.SetOwnerReferences(kept)
	}
}

func pointed(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

package schema

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
// RequestEntityTooLarge if the object cannot be decoded, Invalid if it has problems, Timeout
// after 34 seconds or when the context ends, and one without a reason if the object has a
// resourceVersion. One error is not the server's: that the definition has no such version.
// That a version is not served is a NotFound inside of another error. The result is never
// nil: with an error, it has the warnings.
//
// The metadata is what the server makes of it, with generation 1, except what only a server
// knows: the result has no uid, creationTimestamp, resourceVersion and managedFields, whatever
// the object has. Where a name is generated, it ends in xxxxx.
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
	if err := inTime(ctx, func(ctx context.Context) error { return rest.BeforeCreate(s, ctx, u) }); err != nil {
		return r.fail(err)
	}
	if version, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(u); err == nil && version != 0 {
		return r.fail(internalError(storage.ErrResourceVersionSetOnCreate.Error()))
	}
	u.SetResourceVersion("")
	// Two objects that are created alike are stored alike here.
	u.SetUID("")
	u.SetCreationTimestamp(metav1.Time{})
	return r.finish(u)
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

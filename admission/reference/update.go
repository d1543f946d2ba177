package reference

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
)

// OnEveryUpdate asks in each update for the existence of all references, also of
// those that the object had before. Then an object whose target has vanished can
// only be updated with another reference, or deleted: not by a user who sets a
// label, nor by a controller. The policy of [CrossNamespace] and the permission of
// [Authorize] are still asked for new references alone.
func OnEveryUpdate() Option { return func(o *options) { o.everyUpdate = true } }

// before holds what the object named before the update, and whether by a reference
// that is not optional.
type before map[cache.ObjectName]bool

// stored returns what the object named before the update of the request, and whether
// it is being deleted. In any other request it named nothing and is not; without one,
// its own timestamp says whether it is.
func stored[T runtime.Object](ctx context.Context, target Resource, m metav1.Object, request *admissionv1.AdmissionRequest, refs func(obj T) []Ref) (named before, deleting bool) {
	if request == nil {
		return nil, m.GetDeletionTimestamp() != nil
	}
	if request.Operation != admissionv1.Update {
		return nil, false
	}
	old, err := admission.OldFrom[T](ctx)
	if err != nil || any(old) == any(*new(T)) {
		// It does not fit its type. Its metadata may.
		var partial metav1.PartialObjectMetadata
		return nil, json.Unmarshal(request.OldObject.Raw, &partial) == nil && partial.DeletionTimestamp != nil
	}
	o, err := meta.Accessor(old)
	if err != nil {
		return nil, false
	}
	named = before{}
	for _, ref := range refs(old) {
		if ref.Name != "" {
			name := target.named(namespaceOf(o, request), ref)
			named[name] = named[name] || !ref.Optional
		}
	}
	return named, o.GetDeletionTimestamp() != nil
}

// namespaceOf returns the namespace in which an object is, or will be. The request for
// a Namespace has its own name there, though it is in none
// (apiserver/pkg/endpoints/request/requestinfo.go).
func namespaceOf(m metav1.Object, request *admissionv1.AdmissionRequest) string {
	if m.GetNamespace() == "" && request != nil && !isFor(request, schema.GroupResource{Resource: "namespaces"}) {
		return request.Namespace
	}
	return m.GetNamespace()
}

// isFor says whether a request is for objects of a resource.
func isFor(request *admissionv1.AdmissionRequest, resource schema.GroupResource) bool {
	return request != nil && resource == schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
}

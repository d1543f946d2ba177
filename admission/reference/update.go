package reference

import (
	"context"
	"fmt"

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

// before holds what an object named before the update, and whether by a reference
// that is not optional.
type before map[cache.ObjectName]bool

// namedBefore returns what the object named before the update of the request. In
// any other request, and without one, all references are new.
func namedBefore[T runtime.Object](ctx context.Context, c *checker, request *admissionv1.AdmissionRequest, refs func(obj T) []Ref) (before, error) {
	if request == nil || request.Operation != admissionv1.Update {
		return nil, nil
	}
	old, err := admission.OldFrom[T](ctx)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	m, err := meta.Accessor(old)
	if err != nil {
		return nil, fmt.Errorf("reference: the object as it is stored: %w", err)
	}
	named := before{}
	for _, ref := range refs(old) {
		if ref.Name != "" {
			name := c.target.resource.named(namespaceOf(m, request), ref)
			named[name] = named[name] || !ref.Optional
		}
	}
	return named, nil
}

// namespaceOf returns the namespace in which an object is, or will be.
func namespaceOf(m metav1.Object, request *admissionv1.AdmissionRequest) string {
	if m.GetNamespace() == "" && request != nil {
		return request.Namespace
	}
	return m.GetNamespace()
}

// selfOf returns the object of the request, if it is of the kind to which it
// refers: it may name itself before it is there.
func selfOf(m metav1.Object, request *admissionv1.AdmissionRequest, target Resource) (self cache.ObjectName) {
	if request != nil && target.resource == (schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}) {
		self = cache.ObjectName{Namespace: namespaceOf(m, request), Name: m.GetName()}
	}
	return self
}

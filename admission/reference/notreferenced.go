package reference

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
)

// maxNamed is the maximal number of referrers in an error.
const maxNamed = 10

// namespaceController is the service account that deletes the objects of a deleted namespace
// (kubernetes/pkg/controller/namespace, with kube-controller-manager's flag
// --use-service-account-credentials).
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// NotReferenced returns a function for [admission.ValidateDelete] that denies the deletion of an
// object of type T while other objects reference it. The error is a Forbidden API error with the
// names of the first ten referrers, which the user sees even without permission to read them, and
// the total number. A referrer that is in two Referrers counts twice.
//
// All Referrers must have the resource of T as their target. Requests for other resources are
// allowed, and so are repeated deletions of an object that is already being deleted. A dry run is
// answered like the real request.
//
// The function leaves the request undecided in these cases:
//
//   - [Referrers.Ready] returns an error, for example because the watch of the informer is broken.
//   - The scope of the object contradicts [Namespaced] or [ClusterScoped].
//
// When a user deletes a collection, the first denial ends the request, but the API server has
// already deleted the objects before it.
//
// When a namespace is deleted, the namespace controller deletes its objects, and retries after a
// denial. In requests from that controller's service account, referrers in the same namespace do
// not count, because they are deleted too, and two objects that reference each other would block
// the deletion of the namespace forever. Referrers in other namespaces count, even if these
// namespaces are being deleted. If kube-controller-manager runs without a service account for each
// controller, referrers in the same namespace count as well.
//
// NotReferenced panics if there are no Referrers, or if they have different targets.
func NotReferenced[T runtime.Object](referrers ...*Referrers) func(ctx context.Context, obj T) (field.ErrorList, error) {
	if len(referrers) == 0 {
		panic(errors.New("reference: NotReferenced: no referrers"))
	}
	for _, r := range referrers {
		if first := referrers[0]; first.target != r.target {
			panic(fmt.Errorf("reference: NotReferenced: %s refer to %s, but %s refer to %s: expected referrers of one target",
				r.resource, r.target, first.resource, first.target))
		}
	}
	of := referrers[0].target
	return func(ctx context.Context, obj T) (field.ErrorList, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		request, ok := admission.RequestFrom(ctx)
		if ok && request.Resource.Resource != "" && !isFor(request, of.resource) {
			return nil, nil
		}
		target := cache.MetaObjectToName(m)
		if err := of.checkScope(target); err != nil {
			return nil, err
		}
		if m.GetDeletionTimestamp() != nil {
			return nil, nil
		}
		leaveOut := ""
		if ok && request.UserInfo.Username == namespaceController {
			leaveOut = target.Namespace
		}
		used, err := usersOf(target, referrers, leaveOut)
		if err != nil || used == "" {
			return nil, err
		}
		return nil, apierrors.NewForbidden(of.resource, m.GetName(), errors.New("referenced by "+used))
	}
}

// usersOf lists the first referrers of a target by resource, with the number of all if there
// are more. It returns an empty string if there are none. It leaves out one namespace.
func usersOf(target cache.ObjectName, referrers []*Referrers, leaveOut string) (string, error) {
	var kinds []string
	var named, total int
	for _, r := range referrers {
		if err := r.Ready(nil); err != nil {
			return "", err
		}
		users, count := r.index.of(target, maxNamed-named, leaveOut)
		named, total = named+len(users), total+count
		if len(users) > 0 {
			names := make([]string, len(users))
			for i, user := range users {
				names[i] = user.String()
			}
			kinds = append(kinds, r.resource.Resource+": "+strings.Join(names, ", "))
		}
	}
	text := strings.Join(kinds, "; ")
	if total > named {
		text += fmt.Sprintf(" and %d more, %d in all", total-named, total)
	}
	return text, nil
}

// isFor reports whether a request is for objects of a resource.
func isFor(request *admissionv1.AdmissionRequest, resource schema.GroupResource) bool {
	return resource == schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
}

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

// maxNamed is how many users an answer names; of the others it gives the number.
const maxNamed = 10

// namespaceController is the user who empties a namespace that is being deleted
// (kubernetes/pkg/controller/namespace, with kube-controller-manager's flag
// --use-service-account-credentials).
const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// NotReferenced returns a validating function for the deletion of objects of type
// T, for [admission.ValidateDelete]: it is forbidden while others name the object.
// The error names the first ten of them, also to a user who may not read those, and
// gives the number of the others; a user that two referrers know counts twice. All the
// referrers must be of one target, the kind of T; a request for another resource is not
// judged.
//
// It returns an error that is not a verdict while [Referrers.Check] does, and for an object
// that does not fit the declared scope of the target. An object that is being deleted
// already is not checked. A dry run is answered like the real request.
//
// Deleting a collection deletes each object of it: the first that is denied
// ends it, and those before it are gone. When a namespace is deleted, its
// controller deletes what is in it, and retries what is denied; users
// in the same namespace do not count for it, because they go too. Otherwise two objects
// that name each other would keep the namespace forever. Users in other namespaces
// count, also when both namespaces are deleted. The controller is known by its service
// account: where kube-controller-manager runs without one for each controller, users in
// the same namespace do count.
//
// NotReferenced panics without referrers, and with those of several targets.
func NotReferenced[T runtime.Object](referrers ...*Referrers) func(ctx context.Context, obj T) (field.ErrorList, error) {
	if len(referrers) == 0 {
		panic(errors.New("reference: NotReferenced: no referrers"))
	}
	for _, r := range referrers {
		if first := referrers[0]; first.target != r.target {
			panic(fmt.Errorf("reference: NotReferenced: %s name %s, but %s name %s",
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
		return nil, apierrors.NewForbidden(of.resource, m.GetName(), errors.New("it is used by "+used))
	}
}

// usersOf names the first users of an object, by their kinds, and gives the number of all
// if there are more, or empty.
func usersOf(target cache.ObjectName, referrers []*Referrers, leaveOut string) (string, error) {
	var kinds []string
	var named, total int
	for _, r := range referrers {
		if err := r.Check(nil); err != nil {
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

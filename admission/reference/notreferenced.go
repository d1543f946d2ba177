package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
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
// The error names up to ten of them, in all and in a fixed order, also to a user
// who may not read those; of more, it says how many there are. It takes the same
// time for a hundred thousand users as for ten. All the referrers must be of one
// target, the kind of T.
//
// It returns an error that is no verdict while an informer has not synced. An
// object that is being deleted already is not checked. A dry run is answered as
// the real request is; neither changes anything.
//
// To delete a collection is to delete each object of it: the first that is denied
// ends it, and those before it have gone. When a namespace is deleted, its
// controller deletes what is in it, and tries again what is denied; in that, users
// in the same namespace do not count, because they go too: else two objects that
// name each other would keep the namespace for ever. Users in other namespaces
// count, and keep it. The controller is known by its service account: where
// kube-controller-manager runs without one for each controller, users in the same
// namespace do count. The garbage collector is judged as everybody, and tries again.
//
// NotReferenced panics, with all faults in one error, if there are no referrers, one
// is nil, or they are of several targets.
func NotReferenced[T runtime.Object](referrers ...*Referrers) func(ctx context.Context, obj T) (field.ErrorList, error) {
	var faults []error
	if len(referrers) == 0 {
		faults = append(faults, errors.New("reference: NotReferenced: there are no referrers"))
	}
	for i, r := range referrers {
		switch first := referrers[0]; {
		case r == nil:
			faults = append(faults, fmt.Errorf("reference: NotReferenced: the referrers at %d are nil", i))
		case first != nil && first.target != r.target:
			faults = append(faults, fmt.Errorf("reference: NotReferenced: %s name %s, and not %s as %s do", r.resource, r.target, first.target, first.resource))
		}
	}
	if err := errors.Join(faults...); err != nil {
		panic(err)
	}
	return func(ctx context.Context, obj T) (field.ErrorList, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		if m.GetDeletionTimestamp() != nil {
			return nil, nil
		}
		target := cache.MetaObjectToName(m)
		var kinds []string
		var total, named int
		for _, r := range referrers {
			if err := r.Check(nil); err != nil {
				return nil, err
			}
			names, count := r.first(target, maxNamed)
			if count > 0 && target.Namespace != "" && emptiesNamespace(ctx) {
				names, count = r.outside(target)
			}
			total += count
			if names = names[:min(len(names), maxNamed-named)]; len(names) > 0 {
				named += len(names)
				kinds = append(kinds, r.resource.Resource+": "+joinNames(names))
			}
		}
		if total == 0 {
			return nil, nil
		}
		users := strings.Join(kinds, "; ")
		if more := total - named; more > 0 {
			users += fmt.Sprintf(" and %d more, %d in all", more, total)
		}
		return nil, apierrors.NewForbidden(referrers[0].target.resource, m.GetName(), fmt.Errorf("it is used by %s", users))
	}
}

// emptiesNamespace says whether a request is made because its namespace is deleted.
func emptiesNamespace(ctx context.Context) bool {
	request, ok := admission.RequestFrom(ctx)
	return ok && request.UserInfo.Username == namespaceController
}

// outside returns the users of an object that are not in its namespace. It looks
// at all.
func (r *Referrers) outside(target cache.ObjectName) ([]cache.ObjectName, int) {
	names, _ := r.first(target, -1)
	names = slices.DeleteFunc(names, func(user cache.ObjectName) bool { return user.Namespace == target.Namespace })
	return names, len(names)
}

func joinNames(names []cache.ObjectName) string {
	var all []string
	for _, name := range names {
		all = append(all, name.String())
	}
	return strings.Join(all, ", ")
}

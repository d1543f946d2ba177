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
// The error names up to ten of them, in all and in a fixed order, also to a user
// who may not read those: of each kind at least one, while there are no more than ten
// kinds, and of a further kind the number. Of more users, it says how many there are. It
// takes the same time for a hundred thousand users as for ten; except with an
// [Indexer], and where several referrers of one resource know users, of which it has
// to look at all to count each once. All the referrers must be of one target, the kind
// of T; a request for another resource is not judged.
//
// It returns an error that is no verdict while an informer has not synced, when one
// has stopped, after a fault (see [Referrers.Check]), and for an object that does not
// fit the declared scope of the target. An object that is being deleted already is not
// checked. A dry run is answered as the real request is; neither changes anything.
//
// To delete a collection is to delete each object of it: the first that is denied
// ends it, and those before it have gone. When a namespace is deleted, its
// controller deletes what is in it, and tries again what is denied; in that, users
// in the same namespace do not count, because they go too: else two objects that
// name each other would keep the namespace for ever. Users in other namespaces
// count, and keep it: also when both namespaces are deleted. The
// index is sorted by namespace, and skips them in blocks of up to 256. The controller is known by its service account: where
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
	kinds, of := kindsOf(referrers), referrers[0].target
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
		if err := of.misplaced(target); err != nil {
			return nil, err
		}
		if m.GetDeletionTimestamp() != nil {
			return nil, nil
		}
		leaveOut := ""
		if ok && request.UserInfo.Username == namespaceController {
			leaveOut = target.Namespace
		}
		var found []found
		for _, k := range kinds {
			f, err := k.users(target, leaveOut)
			if err != nil {
				return nil, err
			}
			if f.count > 0 {
				found = append(found, f)
			}
		}
		if len(found) == 0 {
			return nil, nil
		}
		return nil, apierrors.NewForbidden(of.resource, m.GetName(), fmt.Errorf("it is used by %s", say(found)))
	}
}

// kind are all referrers of one resource: an object that several of them know is one
// user.
type kind struct {
	name      string
	referrers []*Referrers
}

// kindsOf sorts referrers by their kinds. A kind is named by its plural, and by its
// group too where another has the same plural.
func kindsOf(referrers []*Referrers) (kinds []kind) {
	plurals := map[string]map[string]bool{}
	at := map[schema.GroupResource]int{}
	for _, r := range referrers {
		i, known := at[r.resource]
		if !known {
			i = len(kinds)
			at[r.resource] = i
			kinds = append(kinds, kind{})
		}
		kinds[i].referrers = append(kinds[i].referrers, r)
		if plurals[r.resource.Resource] == nil {
			plurals[r.resource.Resource] = map[string]bool{}
		}
		plurals[r.resource.Resource][r.resource.Group] = true
	}
	for i := range kinds {
		resource := kinds[i].referrers[0].resource
		if kinds[i].name = resource.Resource; len(plurals[resource.Resource]) > 1 {
			kinds[i].name = resource.String()
		}
	}
	return kinds
}

// found are the users of one kind: how many, and the first of them.
type found struct {
	kind  string
	names []cache.ObjectName
	count int
}

// users returns those of an object. Where more than one of the referrers know some, it
// must look at all, to count none of them twice.
func (k kind) users(target cache.ObjectName, leaveOut string) (found, error) {
	of := found{kind: k.name}
	var know []*Referrers
	for _, r := range k.referrers {
		if err := r.Check(nil); err != nil {
			return of, err
		}
		if names, count := r.first(target, maxNamed, leaveOut); count > 0 {
			know = append(know, r)
			of.names, of.count = names, count
		}
	}
	if len(know) < 2 {
		return of, nil
	}
	of.names = nil
	for _, r := range know {
		names, _ := r.first(target, -1, leaveOut)
		of.names = append(of.names, names...)
	}
	slices.SortFunc(of.names, compareNames)
	of.names = slices.Compact(of.names)
	of.count = len(of.names)
	return of, nil
}

// say names up to maxNamed users, of each kind at least one; of kinds for which there
// is no room it gives the number.
func say(all []found) string {
	var parts []string
	var more, total int
	room := maxNamed
	for i, f := range all {
		total += f.count
		later := len(all) - i - 1
		named := min(len(f.names), max(room-later, min(room, 1)))
		if named == 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", f.kind, f.count))
			continue
		}
		room -= named
		more += f.count - named
		parts = append(parts, f.kind+": "+joinNames(f.names[:named]))
	}
	text := strings.Join(parts, "; ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more, %d in all", more, total)
	}
	return text
}

func joinNames(names []cache.ObjectName) string {
	var all []string
	for _, name := range names {
		all = append(all, name.String())
	}
	return strings.Join(all, ", ")
}

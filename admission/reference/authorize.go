package reference

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/admission"
)

// Authorize denies a reference if the user of the request lacks a permission for the target. The
// verb of the permission defaults to get. Without this option, a controller that follows references
// can read objects for users who lack the permission. The denial is a field.Forbidden with the
// message of the API server (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
//
// The function create is Create of AuthorizationV1().SubjectAccessReviews() of a client-go clientset, or
// does the same. The request is left undecided if a review fails, or if it neither allows nor denies and has an
// evaluation error, as in the API server (k8s.io/apiserver/pkg/endpoints/filters/authorization.go).
//
// References that the object had before an update are not checked, because the user may be a
// controller that only sets a label. The reviews are not cached. QPS and Burst of the client's
// rest.Config limit their rate.
func Authorize(create func(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error), verb string) Option {
	if verb == "" {
		verb = "get"
	}
	return func(o *options) { o.authorizer = &authorizer{create, verb} }
}

type authorizer struct {
	create func(context.Context, *authorizationv1.SubjectAccessReview, metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
	verb   string
}

// refuses returns the reason why the user lacks the permission for a reference, or an empty
// string.
func (a *authorizer) refuses(ctx context.Context, resource Resource, q *question) (string, error) {
	request, ok := admission.RequestFrom(ctx)
	if !ok {
		err := errors.New("the context has no admission request")
		return "", undecided(err, "%s: cannot find out who names %s %q", q.path, resource, q.name)
	}
	user, name := request.UserInfo, q.name
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := a.create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   user.Username,
		UID:    user.UID,
		Groups: user.Groups,
		Extra:  extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb:      a.verb,
			Group:     resource.resource.Group,
			Resource:  resource.resource.Resource,
			Namespace: name.Namespace,
			Name:      name.Name,
		},
	}}, metav1.CreateOptions{})
	if err == nil && !review.Status.Allowed && !review.Status.Denied && review.Status.EvaluationError != "" {
		err = errors.New(review.Status.EvaluationError)
	}
	switch {
	case err != nil:
		return "", undecided(err, "%s: cannot find out whether user %q may %s %s %q",
			q.path, user.Username, a.verb, resource, name)
	case review.Status.Allowed:
		return "", nil
	}
	where := "at the cluster scope"
	if name.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", name.Namespace)
	}
	refusal := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s",
		user.Username, a.verb, resource.resource.Resource, resource.resource.Group, where)
	if review.Status.Reason != "" {
		refusal += ": " + review.Status.Reason
	}
	return refusal, nil
}

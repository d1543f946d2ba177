package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/crdkit/crdkit/admission"
)

// AccessReviews asks the API server what a user may do. AuthorizationV1().
// SubjectAccessReviews() of a client-go clientset is one. The webhook's user needs
// the verb create for subjectaccessreviews in API group authorization.k8s.io.
type AccessReviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// Authorize denies a reference to an object for which the user who makes the
// request does not have the verb; an empty verb is get. Without it, a user can
// have a controller read for him, through a reference, what he may not read
// himself. The denial is field.Forbidden, in the words of the API server
// (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go).
//
// A review that fails leaves the request undecided; so does one that allows
// nothing because of an evaluation error, as in the API server itself
// (k8s.io/apiserver/pkg/endpoints/filters/authorization.go). The answers are not
// kept. References that the object had before an update are not checked: the user
// may be a controller that sets a label. The options limit the reviews, of all that the
// returned option is given to. To give two to one [Exists] is a fault.
func Authorize(reviews AccessReviews, verb string, opts ...RequestOption) Option {
	l := limits{timeout: 2 * time.Second, concurrency: 10, qps: 100, burst: 500}.with(opts)
	if verb == "" {
		verb = "get"
	}
	fault := l.check()
	if reviews == nil {
		fault = errors.Join(fault, errors.New("the reviews are nil"))
	}
	if fault != nil {
		fault = fmt.Errorf("reference: Authorize: %w", fault)
		return func(o *options) { o.faults = append(o.faults, fault) }
	}
	a := &authorizer{verb: verb}
	a.reviews = newLive(l, func(ctx context.Context, key access) (authorizationv1.SubjectAccessReviewStatus, error) {
		var user authenticationv1.UserInfo
		if err := json.Unmarshal([]byte(key.user), &user); err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
		for name, values := range user.Extra {
			extra[name] = authorizationv1.ExtraValue(values)
		}
		review, err := reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   user.Username,
			UID:    user.UID,
			Groups: user.Groups,
			Extra:  extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb:      verb,
				Group:     key.resource.resource.Group,
				Resource:  key.resource.resource.Resource,
				Namespace: key.name.Namespace,
				Name:      key.name.Name,
			},
		}}, metav1.CreateOptions{})
		if err == nil && review == nil {
			err = errors.New("the review is nil")
		}
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return review.Status, nil
	})
	return func(o *options) {
		if o.authorizer != nil {
			o.faults = append(o.faults, errors.New("reference: Authorize is given twice"))
		}
		o.authorizer = a
	}
}

type authorizer struct {
	verb    string
	reviews *live[access, authorizationv1.SubjectAccessReviewStatus]
}

// access is a question to the API server. The user is one in JSON: groups and
// extra matter too.
type access struct {
	user     string
	resource Resource
	name     cache.ObjectName
}

// refuses returns why the user of the request may not do what the reference needs;
// it is empty if he may.
func (a *authorizer) refuses(ctx context.Context, resource Resource, name cache.ObjectName) (string, *undecided) {
	request, ok := admission.RequestFrom(ctx)
	if !ok {
		return "", because(errors.New("the context has no admission request"), "cannot find out who names %s %q", resource, name)
	}
	user, err := json.Marshal(request.UserInfo)
	if err != nil {
		return "", because(err, "cannot find out who names %s %q", resource, name)
	}
	status, err := a.reviews.do(ctx, access{string(user), resource, name})
	if err == nil && !status.Allowed && !status.Denied && status.EvaluationError != "" {
		err = errors.New(status.EvaluationError)
	}
	switch {
	case err != nil:
		return "", because(err, "cannot find out whether user %q may %s %s %q", request.UserInfo.Username, a.verb, resource, name)
	case status.Allowed:
		return "", nil
	}
	where := "at the cluster scope"
	if name.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", name.Namespace)
	}
	refusal := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", request.UserInfo.Username, a.verb, resource.resource.Resource, resource.resource.Group, where)
	if status.Reason != "" {
		refusal += ": " + status.Reason
	}
	return refusal, nil
}

package apiservertest

import (
	"context"
	"reflect"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// reviewREST answers whether a user may send a request
// (kubernetes/pkg/registry/authorization/subjectaccessreview/rest.go and its siblings).
type reviewREST struct {
	kind   runtime.Object
	decide authorizer.AuthorizerFunc
}

var _ rest.Creater = reviewREST{}

func (r reviewREST) New() runtime.Object { return r.kind.DeepCopyObject() }
func (reviewREST) Destroy()              {}
func (r reviewREST) GetSingularName() string {
	return strings.ToLower(reflect.TypeOf(r.kind).Elem().Name())
}
func (r reviewREST) NamespaceScoped() bool {
	_, local := r.kind.(*authorizationv1.LocalSubjectAccessReview)
	return local
}

func (r reviewREST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	var spec authorizationv1.SubjectAccessReviewSpec
	var status *authorizationv1.SubjectAccessReviewStatus
	u, _ := genericapirequest.UserFrom(ctx)
	switch review := obj.(type) {
	case *authorizationv1.SubjectAccessReview:
		spec, status = review.Spec, &review.Status
	case *authorizationv1.LocalSubjectAccessReview:
		spec, status = review.Spec, &review.Status
	case *authorizationv1.SelfSubjectAccessReview:
		spec, status = authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: review.Spec.ResourceAttributes, NonResourceAttributes: review.Spec.NonResourceAttributes}, &review.Status
	}
	path := field.NewPath("spec")
	var errs field.ErrorList
	if _, self := obj.(*authorizationv1.SelfSubjectAccessReview); !self {
		if spec.User == "" && len(spec.Groups) == 0 {
			errs = append(errs, field.Invalid(path.Child("user"), spec.User, "at least one of user or group must be specified"))
		}
		u = &user.DefaultInfo{Name: spec.User, Groups: spec.Groups, UID: spec.UID}
	}
	if (spec.ResourceAttributes == nil) == (spec.NonResourceAttributes == nil) {
		errs = append(errs, field.Invalid(path.Child("resourceAttributes"), spec.ResourceAttributes, "exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	if r.NamespaceScoped() && (spec.ResourceAttributes == nil || spec.ResourceAttributes.Namespace != genericapirequest.NamespaceValue(ctx)) {
		errs = append(errs, field.Invalid(path.Child("resourceAttributes", "namespace"), spec.ResourceAttributes, "must match metadata.namespace"))
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(obj.GetObjectKind().GroupVersionKind().GroupKind(), "", errs)
	}
	if err := validate(ctx, obj.DeepCopyObject()); err != nil {
		return nil, err
	}
	request := authorizer.AttributesRecord{User: u}
	if in := spec.ResourceAttributes; in != nil {
		request.ResourceRequest = true
		request.Verb, request.Namespace, request.Name = in.Verb, in.Namespace, in.Name
		request.APIGroup, request.APIVersion, request.Resource, request.Subresource = in.Group, in.Version, in.Resource, in.Subresource
	} else {
		request.Verb, request.Path = spec.NonResourceAttributes.Verb, spec.NonResourceAttributes.Path
	}
	decision, reason, err := r.decide(ctx, request)
	*status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return obj, nil
}

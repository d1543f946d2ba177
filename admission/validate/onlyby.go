package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
)

// ChangedOnlyBy lets only some users change a field: those for which one of the
// functions returns true; without a function, no users. It is for functions given to
// [admission.ValidateUpdate]; [SetOnlyBy] is its other half, for [admission.Validate].
// Without that, the user who creates the object chooses the value.
//
// The user is that of [admission.RequestFrom]: the impersonated one, if there is one.
// Changes by a mutating webhook count as changes by the user of the request.
//
// The error is field.Forbidden, and names the user. A changed value is an internal
// error of the field if the context is not that of an admission function.
func ChangedOnlyBy[T any](ctx context.Context, path *field.Path, value, oldValue T, who ...func(authenticationv1.UserInfo) bool) field.ErrorList {
	if equality.Semantic.DeepEqual(value, oldValue) {
		return nil
	}
	request, ok := admission.RequestFrom(ctx)
	if !ok {
		return field.ErrorList{field.InternalError(path, errors.New("the user is not known: the context is not that of an admission function"))}
	}
	for _, may := range who {
		if may(request.UserInfo) {
			return nil
		}
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("user %q may not change this field", request.UserInfo.Username))}
}

// SetOnlyBy lets only some users create an object that has a value in this field, as
// [ChangedOnlyBy] does for updates. It returns nil for other operations than CREATE,
// so that it can stand in a function given to [admission.Validate].
//
// A default of the schema is a value too: for such a field, call
// ChangedOnlyBy with the default as the old value instead, when the operation is
// CREATE.
func SetOnlyBy[T any](ctx context.Context, path *field.Path, value T, who ...func(authenticationv1.UserInfo) bool) field.ErrorList {
	if request, ok := admission.RequestFrom(ctx); ok && request.Operation != admissionv1.Create {
		return nil
	}
	var none T
	return ChangedOnlyBy(ctx, path, value, none, who...)
}

// User returns a function for [ChangedOnlyBy] that knows users by one of their names.
func User(names ...string) func(authenticationv1.UserInfo) bool {
	return func(user authenticationv1.UserInfo) bool { return slices.Contains(names, user.Username) }
}

// Group returns a function for [ChangedOnlyBy] that knows the members of any of the
// groups. Those of a service account are system:serviceaccounts and
// system:serviceaccounts:<its namespace>.
func Group(names ...string) func(authenticationv1.UserInfo) bool {
	return func(user authenticationv1.UserInfo) bool {
		return slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(names, group) })
	}
}

// ServiceAccount returns a function for [ChangedOnlyBy] that knows one service account
// by the name of its user (apiserver/pkg/authentication/serviceaccount.MakeUsername).
func ServiceAccount(namespace, name string) func(authenticationv1.UserInfo) bool {
	return User("system:serviceaccount:" + namespace + ":" + name)
}

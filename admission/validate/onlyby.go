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

// ChangedOnlyBy rejects a change of a field, unless one of the functions in who returns true for
// the user. Without functions, no user may change the field. Use it in functions of
// [admission.ValidateUpdate], together with [SetOnlyBy] in functions of [admission.Validate], so
// that no other user chooses the value on creation.
//
// The user is the UserInfo of [admission.RequestFrom]: with impersonation, the impersonated user.
// Changes by a mutating webhook count as changes by the user of the request.
//
// The error is field.Forbidden with the name of the user. If the value changed and ctx is not
// the context of an admission function, the error is field.InternalError.
func ChangedOnlyBy[T any](ctx context.Context, path *field.Path, value, oldValue T, who ...func(authenticationv1.UserInfo) bool) field.ErrorList {
	if equality.Semantic.DeepEqual(value, oldValue) {
		return nil
	}
	request, ok := admission.RequestFrom(ctx)
	if !ok {
		return field.ErrorList{field.InternalError(path, errors.New("the user is unknown: expected the context of an admission function"))}
	}
	for _, may := range who {
		if may(request.UserInfo) {
			return nil
		}
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("user %q may not change this field", request.UserInfo.Username))}
}

// SetOnlyBy rejects the creation of an object that has a value in this field, unless one of the
// functions in who returns true for the user; see [ChangedOnlyBy]. It returns nil for operations
// other than CREATE, so that you can call it in a function of [admission.Validate].
//
// For a field with a default in the schema, which counts as a value, call ChangedOnlyBy on CREATE
// instead, with the default as the old value.
func SetOnlyBy[T any](ctx context.Context, path *field.Path, value T, who ...func(authenticationv1.UserInfo) bool) field.ErrorList {
	if request, ok := admission.RequestFrom(ctx); ok && request.Operation != admissionv1.Create {
		return nil
	}
	var none T
	return ChangedOnlyBy(ctx, path, value, none, who...)
}

// User returns a function for [ChangedOnlyBy] that returns true for users with one of the
// names.
func User(names ...string) func(authenticationv1.UserInfo) bool {
	return func(user authenticationv1.UserInfo) bool { return slices.Contains(names, user.Username) }
}

// Group returns a function for [ChangedOnlyBy] that returns true for members of any of the
// groups. The groups of a service account include system:serviceaccounts and
// system:serviceaccounts:<its namespace>.
func Group(names ...string) func(authenticationv1.UserInfo) bool {
	return func(user authenticationv1.UserInfo) bool {
		return slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(names, group) })
	}
}

// ServiceAccount returns a function for [ChangedOnlyBy] that returns true for one service account,
// which it identifies by the user name (apiserver/pkg/authentication/serviceaccount.MakeUsername).
func ServiceAccount(namespace, name string) func(authenticationv1.UserInfo) bool {
	return User("system:serviceaccount:" + namespace + ":" + name)
}

package validate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Immutable rejects every change of a field, including a change from unset to a value. The error is
// field.Invalid with the new value, as in
// [k8s.io/apimachinery/pkg/api/validation.ValidateImmutableField].
func Immutable[T any](path *field.Path, value, oldValue T) field.ErrorList {
	if equality.Semantic.DeepEqual(value, oldValue) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, validation.FieldImmutableErrorMsg)}
}

// ImmutableOnceSet allows one change of a field, from unset to a value. It rejects later
// changes, and also a change back to unset, because another value could follow. The error is
// field.Invalid with the new value, and has the message of the API server's declarative
// validation (apimachinery/pkg/api/validate/update.go: NoModify, NoUnset).
//
// ImmutableOnceSet rejects the update of an older client that drops the field because its Go type
// lacks it.
func ImmutableOnceSet[T any](path *field.Path, value, oldValue T) field.ErrorList {
	switch {
	case unset(oldValue), equality.Semantic.DeepEqual(value, oldValue):
		return nil
	case unset(value):
		return field.ErrorList{field.Invalid(path, value, "field cannot be cleared once set")}
	default:
		return field.ErrorList{field.Invalid(path, value, "field cannot be modified once set")}
	}
}

// unset reports whether a value is equal to the zero value of its type.
func unset[T any](value T) bool {
	var zero T
	return equality.Semantic.DeepEqual(value, zero)
}

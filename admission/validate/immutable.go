package validate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Immutable refuses every change of a field, also from unset to a value. The error
// is field.Invalid with the new value, like that of
// [k8s.io/apimachinery/pkg/api/validation.ValidateImmutableField], which also
// compares so: see the package documentation.
func Immutable[T any](path *field.Path, value, oldValue T) field.ErrorList {
	if equality.Semantic.DeepEqual(value, oldValue) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, validation.FieldImmutableErrorMsg)}
}

// ImmutableOnceSet lets a field go from unset to a value, once: a value stays what it
// is. It may not be unset either, because the next request could set another. The
// error is field.Invalid with the new value, in the words of the API server's own
// declarative validation (apimachinery/pkg/api/validate/update.go: NoModify, NoUnset).
//
// A client that writes whole objects with an older Go type drops a field that it does
// not know, and is refused here.
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

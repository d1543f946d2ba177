package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ExactlyOneOf requires that exactly one of the fields in isSet is set. The map isSet has, by the
// name of each field, whether the field is set; a pointer is set if it is not nil. The path is that
// of the object with the fields.
//
// The error is field.Invalid at the path, with the sorted names of the fields that are set,
// and of all fields (as in apimachinery/pkg/api/validate/union.go).
func ExactlyOneOf(path *field.Path, isSet map[string]bool) field.ErrorList {
	if errs := AtLeastOneOf(path, isSet); errs != nil {
		return errs
	}
	return atMostOne(path, isSet, "exactly")
}

// AtMostOneOf is like [ExactlyOneOf], but allows that no field is set.
func AtMostOneOf(path *field.Path, isSet map[string]bool) field.ErrorList {
	return atMostOne(path, isSet, "at most")
}

// AtLeastOneOf is like [ExactlyOneOf], but allows that several fields are set.
func AtLeastOneOf(path *field.Path, isSet map[string]bool) field.ErrorList {
	if len(namesOfSet(isSet)) > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "", "must specify one of: "+candidates(isSet))}
}

func atMostOne(path *field.Path, isSet map[string]bool, quantity string) field.ErrorList {
	set := namesOfSet(isSet)
	if len(set) <= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "{"+strings.Join(set, ", ")+"}",
		fmt.Sprintf("must specify %s one of: %s", quantity, candidates(isSet)))}
}

func namesOfSet(isSet map[string]bool) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(isSet)) {
		if isSet[name] {
			names = append(names, name)
		}
	}
	return names
}

func candidates(isSet map[string]bool) string {
	return "`" + strings.Join(slices.Sorted(maps.Keys(isSet)), "`, `") + "`"
}

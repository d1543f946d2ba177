package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ExactlyOneOf requires one of the fields of the object at the path, and no other of
// them. The map holds for each whether it is set: for a pointer, that it is not nil.
//
// The error is field.Invalid at the path, with the names of the fields that are set,
// and of all candidates, sorted (as in apimachinery/pkg/api/validate/union.go).
func ExactlyOneOf(path *field.Path, isSet map[string]bool) field.ErrorList {
	if errs := AtLeastOneOf(path, isSet); errs != nil {
		return errs
	}
	return atMostOne(path, isSet, "exactly")
}

// AtMostOneOf is like [ExactlyOneOf], but lets all the fields be unset.
func AtMostOneOf(path *field.Path, isSet map[string]bool) field.ErrorList {
	return atMostOne(path, isSet, "at most")
}

// AtLeastOneOf is like [ExactlyOneOf], but lets several of the fields be set.
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

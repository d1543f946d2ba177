package validate

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Transition rejects a change of a value, unless allowed has the new value in the list of the old
// value. An unchanged value is always allowed. A value that is not a key of the map cannot change;
// add keys for the empty value, and for values of older releases of your operator, if they may
// change.
//
// The error is field.Invalid with the new value. Its message has the old value and the allowed
// values, in the order of the list.
func Transition[T cmp.Ordered | ~bool](path *field.Path, value, oldValue T, allowed map[T][]T) field.ErrorList {
	if value == oldValue {
		return nil
	}
	var names []string
	for _, to := range allowed[oldValue] {
		if to == value {
			return nil
		}
		names = append(names, show(to))
	}
	detail := fmt.Sprintf("may not change from %s", show(oldValue))
	if len(names) > 0 {
		detail += " to this: supported values: " + strings.Join(names, ", ")
	}
	return field.ErrorList{field.Invalid(path, value, detail)}
}

// show quotes strings, as the field errors of apimachinery do.
func show[T any](value T) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(value)
}

package validate

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Transition lets a value change only as the table allows: from a key to one of the
// values beside it. A value may always stay, and need not be in the table. A value that is
// not a key is final. That includes the empty one, and those of an older release: give them
// a row if they may change.
//
// The error is field.Invalid with the new value. It names the old one, and what is
// allowed, in the order of the table.
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

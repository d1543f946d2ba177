package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EachItem calls a function with each item of a list that was there before, as it is
// and as it was, and joins the errors. Items with the same key are the same: the fields of
// x-kubernetes-list-map-keys, or the item itself for a list that is a set. The path of
// an item is its index in the new list. Items that were added or removed are passed
// over, and so is another old item with the same key.
//
// The function may be one of this package, such as [Immutable].
func EachItem[T any, K comparable](path *field.Path, value, oldValue []T, key func(item T) K, f func(path *field.Path, value, oldValue T) field.ErrorList) field.ErrorList {
	old := make(map[K]T, len(oldValue))
	for _, item := range oldValue {
		if _, twice := old[key(item)]; !twice {
			old[key(item)] = item
		}
	}
	var errs field.ErrorList
	for i, item := range value {
		if was, ok := old[key(item)]; ok {
			errs = append(errs, f(path.Index(i), item, was)...)
		}
	}
	return errs
}

// NoRemoveItem refuses to remove items from a list, which have keys as in [EachItem]. There is one error for each key, in the order of the old list:
// field.Forbidden, with the key in the path (as in apimachinery/pkg/api/validate/
// update.go, for maps).
func NoRemoveItem[T any, K comparable](path *field.Path, value, oldValue []T, key func(item T) K) field.ErrorList {
	known := make(map[K]bool, len(value))
	for _, item := range value {
		known[key(item)] = true
	}
	var errs field.ErrorList
	for _, item := range oldValue {
		if k := key(item); !known[k] {
			known[k] = true
			errs = append(errs, field.Forbidden(path.Key(fmt.Sprint(k)), "item may not be removed"))
		}
	}
	return errs
}

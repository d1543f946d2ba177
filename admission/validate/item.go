package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EachItem calls f with the new and the old value of each item that is in both lists, and
// joins the errors. f may be a function of this package, such as [Immutable].
//
// The function key returns the key by which an item is found in both lists: the fields of
// x-kubernetes-list-map-keys, or the item itself if the list is a set. If several old items have
// the same key, the first is used. The path of an item has its index in the new list.
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

// NoRemoveItem rejects the removal of items from a list, which have keys as in [EachItem]. It
// returns one error for each missing key, in the order of the old list. The error is
// field.Forbidden, with the key in its path (as in apimachinery/pkg/api/validate/update.go,
// for maps).
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

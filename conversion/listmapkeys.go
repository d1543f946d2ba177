package conversion

import (
	"reflect"

	"github.com/crdkit/crdkit/internal/crd"
)

// ListMapKeys sets the keys that identify the elements of a list of the hub, like
// x-kubernetes-list-map-keys in the hub's schema. The path is the names of the fields joined by
// dots, such as spec.toppings. For a list within elements of another list, write
// spec.toppings.extras, without brackets. The name * stands for any name.
//
// [Lossless] returns an error if
//
//   - the path or a key is empty, or the path has brackets,
//   - there are no keys, or
//   - the hub's Go type has no list at the path, or its elements lack one of the keys.
func ListMapKeys(path string, keys ...string) LosslessOption {
	return func(l *lossless) {
		l.errs = append(l.errs, l.lists.AddFor([]reflect.Type{l.hubType}, path, keys...))
	}
}

// ListMapKeysOf sets the keys of all lists that have x-kubernetes-list-map-keys in the
// hub's schema. It reads the schema from the YAML or JSON of one or several CRDs, and
// ignores CRDs of other kinds. If several options set the keys of the same list, the last
// one takes effect.
//
// [Lossless] returns an error if definitions cannot be read, or if no CRD has a schema of
// the hub version.
func ListMapKeysOf(definitions []byte) LosslessOption {
	return func(l *lossless) {
		var hub map[string]any
		found, err := crd.Read(definitions)
		if err == nil {
			hub, err = crd.Schema(found, l.kind, l.hub)
		}
		l.lists.AddSchema(hub)
		l.errs = append(l.errs, err)
	}
}

package conversion

import (
	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/listkeys"
)

// ListMapKeys reads the keys that identify the elements of lists (x-kubernetes-list-map-keys) from
// the schema of the hub, in the YAML or JSON of one or several CRDs. It ignores CRDs of other
// kinds. If several options set the keys of the same list, the last one takes effect. With
// controller-gen, the markers +listType=map and +listMapKey=name add the keys to the schema.
//
// [Lossless] returns an error if definitions cannot be read, or if no CRD has a schema of
// the hub version.
func ListMapKeys(definitions []byte) LosslessOption {
	return func(l *lossless) {
		var hub map[string]any
		found, err := crd.Read(definitions)
		if err == nil {
			hub, err = crd.Schema(found, l.kind, l.hub)
		}
		l.lists = listkeys.OfSchema(hub).Over(l.lists)
		l.errs = append(l.errs, err)
	}
}

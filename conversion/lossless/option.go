package lossless

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/lost"
)

// Option configures conversion.Lossless, which returns mistakes in options at startup, and [Restore],
// which returns them for each object. Give both the same options.
type Option func(*lost.Settings)

// ListMapKeys reads the keys that identify the elements of lists (x-kubernetes-list-map-keys) from
// the schema of the hub, in the YAML or JSON of one or several CustomResourceDefinitions (CRDs). It
// ignores CRDs of other kinds. If several options set the keys of the same list, the last one takes
// effect. With controller-gen, the markers +listType=map and +listMapKey=name add the keys to the
// schema.
//
// The definitions are parsed when an option is first used, so keep the option in a variable. [Restore] needs
// the apiVersion and kind of the spoke or the hub.
//
// It is an error if the definitions cannot be read, if a CRD has no schema, or if none has a
// schema of the hub version.
func ListMapKeys(definitions []byte) Option {
	read := sync.OnceValues(func() (map[schema.GroupVersionKind]*listmapkeys.Tree, error) {
		return listmapkeys.OfDefinitions(definitions)
	})
	return func(s *lost.Settings) {
		keys, err := read()
		s.Keys, s.Errs = append(s.Keys, keys), append(s.Errs, err)
	}
}

// DropInvalidAnnotation drops an invalid annotation, and converts the object without it.
// The stored values are lost, and a log entry gives the reason. By default, an invalid
// annotation is an error of the conversion.
//
// If the hub is the storage version, keep the default. The API server then refuses a write
// with an invalid annotation, and nothing is lost.
//
// If the spoke is the storage version, the API server stores a write in the version of the
// spoke without converting it. With the default, an object with an invalid annotation then
// cannot be read in any other version, and neither can lists that contain it. This lasts
// until the annotation is removed from the spoke. Set DropInvalidAnnotation if lost values
// are better than failing reads.
func DropInvalidAnnotation() Option {
	return func(s *lost.Settings) { s.Drop = true }
}

// VerifyRestored sets a function that is called with the JSON of each hub object that was
// restored from an annotation, before the object is used. The function can, for example,
// validate the object by the schema of the hub. If it returns an error, the annotation is
// invalid. The function may retain the JSON, and must be safe for concurrent use. In [Restore], the
// JSON has no apiVersion and kind if neither the spoke nor the hub has them.
func VerifyRestored(f func(ctx context.Context, hub []byte) error) Option {
	return func(s *lost.Settings) { s.Verify = f }
}

// HubCopy names the annotations in which the conversion to the spoke stores a copy of the hub, such as
// cluster.x-k8s.io/conversion-data. Otherwise, a change of the copy counts as a change of the spoke, and
// after any edit, fields that only the copy shows are left out. The restored hub is without these
// annotations.
func HubCopy(annotations ...string) Option {
	return func(s *lost.Settings) { s.Copies = append(s.Copies, annotations...) }
}

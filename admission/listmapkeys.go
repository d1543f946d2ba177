package admission

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// ListMapKeys reads the keys that identify the elements of lists (x-kubernetes-list-map-keys) from
// the schemas of one or several CustomResourceDefinitions (CRDs), given as YAML or JSON. By these
// keys, the handler recognizes an element that a function of [Mutate] edited or moved, and preserves
// the fields of the element that the Go type does not have. See "What is preserved" in the package
// documentation for lists without keys.
//
// The keys of each version apply to requests in that version, even if the function is for another
// version. If several CRDs have the same version of a kind, the last one takes effect. With
// controller-gen, the markers +listType=map and +listMapKey=name add the keys to the schema. Lists of
// Kubernetes' own types, and of your Go types with a patchMergeKey tag, need no keys in a schema.
//
// Keys are compared exactly, so an element whose key http_proxy becomes HTTP_PROXY is another
// element. A missing key has its default in the schema, or else an empty value. Several elements
// with equal keys are matched with each other as in a list without keys.
//
// [NewHandler] panics if the CRDs cannot be read, or if a CRD has no schema.
func ListMapKeys(definitions []byte) Option {
	return func(h *handler) {
		keys, err := listmapkeys.OfDefinitions(definitions)
		if err != nil {
			h.errs = append(h.errs, fmt.Errorf("admission: %w", err))
		}
		maps.Copy(h.listKeys, keys)
	}
}

// listKeys returns the keys of the lists of the request's object. Those of a CRD override those in
// the tags of the Go type.
func (c *call) listKeys(kind schema.GroupVersionKind, f *function) *listmapkeys.Tree {
	declared := c.handler.listKeys[c.kind]
	if kind == c.kind {
		return declared.Over(f.listKeys)
	}
	return declared.Over(c.handler.typeKeys[c.kind])
}

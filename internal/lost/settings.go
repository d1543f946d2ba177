package lost

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/listmapkeys"
)

// Settings are what the options of package conversion/lossless set.
type Settings struct {
	Keys   []map[schema.GroupVersionKind]*listmapkeys.Tree // of the definitions of each ListMapKeys
	Copies []string                                        // the annotations of HubCopy
	Drop   bool                                            // an invalid annotation
	Verify func(ctx context.Context, hub []byte) error     // may be nil
	Errs   []error                                         // the mistakes in the options
}

// ListKeys returns the keys of the lists of a hub, of any version if its version is empty. Definitions
// without a schema of the hub are an error.
func (s *Settings) ListKeys(hub schema.GroupVersionKind) (keys *listmapkeys.Tree, err error) {
	for _, defined := range s.Keys {
		found := defined[hub]
		for kind, tree := range defined {
			if hub.Version == "" && kind.GroupKind() == hub.GroupKind() {
				found = tree
			}
		}
		if found == nil {
			err = errors.Join(err, fmt.Errorf("no CustomResourceDefinition has a schema of %s in %s",
				cmp.Or(hub.GroupKind().String(), "an object without apiVersion and kind"), cmp.Or(hub.Version, "any version")))
		}
		keys = found.Over(keys)
	}
	return keys, err
}

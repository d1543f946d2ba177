package lossless

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/internal/listkeys"
)

// Option says how list elements are identified: give [Restore] the keys that conversion.Lossless had.
type Option func(*keys) error

type keys struct {
	tree listkeys.Tree
	kind schema.GroupVersionKind // of the hub
	hub  reflect.Type
}

// ListMapKeys is conversion.ListMapKeys: it sets the keys that identify the elements of a list of the
// hub, at a path such as spec.toppings.
func ListMapKeys(path string, names ...string) Option {
	return func(k *keys) error {
		err := k.tree.Add(path, names...)
		if err == nil {
			err = fieldpath.CheckKeys(k.hub, path, names)
		}
		if err != nil {
			return fmt.Errorf("ListMapKeys %q: %w", path, err)
		}
		return nil
	}
}

// ListMapKeysOf is conversion.ListMapKeysOf: it sets the keys of all lists that have
// x-kubernetes-list-map-keys in the hub's schema, in the YAML or JSON of one or several
// CustomResourceDefinitions. It needs the apiVersion and kind of the spoke or the hub. The definitions
// are parsed once for each option, so keep the option in a variable.
func ListMapKeysOf(definitions []byte) Option {
	parse := sync.OnceValues(func() ([]*crd.Definition, error) { return crd.Read(definitions) })
	return func(k *keys) error {
		found, err := parse()
		if err != nil {
			return err
		}
		for _, d := range found {
			for _, v := range d.Spec.Versions {
				if d.GroupKind() == k.kind.GroupKind() && v.Name == k.kind.Version && v.Schema.OpenAPIV3Schema != nil {
					k.tree.AddSchema(v.Schema.OpenAPIV3Schema)
					return nil
				}
			}
		}
		return fmt.Errorf("no CustomResourceDefinition has a schema of %s, version %s", k.kind.GroupKind(), k.kind.Version)
	}
}

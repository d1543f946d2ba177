package lossless

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/listkeys"
)

// Option configures [Restore]. Give it the keys of list elements that conversion.Lossless had.
type Option func(*options) error

type options struct {
	tree   *listkeys.Tree
	hidden []string                // annotations of the spoke
	kind   schema.GroupVersionKind // of the hub, as far as it is known
	hub    reflect.Type
	noted  bool // whether the spoke has the annotation
	check  bool // only, because reading a schema takes longer than most conversions
}

// HubCopy names the annotations in which ConvertFrom stores a copy of the hub, such as
// cluster.x-k8s.io/conversion-data. Otherwise, a change of the copy counts as a change of the spoke, and
// after any edit, fields that only the copy shows are left out.
func HubCopy(annotations ...string) Option {
	return func(o *options) error {
		o.hidden = append(o.hidden, annotations...)
		return nil
	}
}

// ListMapKeys is conversion.ListMapKeys: it reads the keys of all lists that have
// x-kubernetes-list-map-keys in the hub's schema, in the YAML or JSON of one or several
// CustomResourceDefinitions. It needs the apiVersion and kind of the spoke or the hub. The definitions
// are parsed once for each option, so keep the option in a variable.
func ListMapKeys(definitions []byte) Option {
	parse := sync.OnceValues(func() ([]*crd.Definition, error) { return crd.Read(definitions) })
	return func(o *options) error {
		found, err := parse()
		if err != nil || !o.noted && o.kind.Kind == "" {
			return err
		}
		s, err := crd.Schema(found, o.kind.GroupKind(), o.kind.Version)
		if !o.check {
			o.tree = listkeys.OfSchema(s).Over(o.tree)
		}
		return err
	}
}

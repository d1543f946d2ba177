package conversion

import (
	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/fieldpath"
)

// ListMapKeys says which keys identify the elements of a list of the hub: what its schema
// says in x-kubernetes-list-map-keys. The path is one of names joined by dots, such as
// spec.toppings; the elements of lists on the way are not named in it, and * is any name.
// [Lossless] returns an error if the path or a key is empty, if the path has brackets, if
// there are no keys, and if the hub's Go type has no such list, whose elements have all the
// keys.
func ListMapKeys(path string, keys ...string) LosslessOption {
	return func(l *lossless) {
		err := l.lists.Add(path, keys...)
		if err == nil && l.hubType != nil {
			err = fieldpath.CheckKeys(l.hubType, path, keys)
		}
		if err != nil {
			l.wrong("ListMapKeys %q: %w", path, err)
		}
	}
}

// ListMapKeysOf takes all list-map keys from the hub's schema in a definition. The text is
// YAML or JSON, of one or of several CustomResourceDefinitions; those of other kinds are passed
// over. [Lossless] returns an error if none has a schema of the hub version. Of two options
// that speak of the same list, the last counts.
func ListMapKeysOf(definitions []byte) LosslessOption {
	return func(l *lossless) {
		found, err := crd.Read(definitions)
		if err != nil {
			l.wrong("%w", err)
			return
		}
		for _, d := range found {
			for _, v := range d.Spec.Versions {
				if d.GroupKind() == l.kind && v.Name == l.hub && v.Schema.OpenAPIV3Schema != nil {
					l.lists.AddSchema(v.Schema.OpenAPIV3Schema)
					return
				}
			}
		}
		l.wrong("no CustomResourceDefinition has a schema of %s, version %s", l.kind, l.hub)
	}
}

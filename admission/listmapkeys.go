package admission

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/internal/listkeys"
)

// ListMapKeys declares which keys identify the elements of a list, as its schema does in
// x-kubernetes-list-map-keys: by them the handler identifies an element that a function
// of [Mutate] has edited or moved, and keeps in it what the Go type does not know. The
// path is one of names joined by dots, such as spec.toppings; the elements of lists on
// the way are not named in it, and * is any name. It is that of the version of the
// request, also where the function is for another one, and it holds for all kinds that
// the handler serves. It is an error if the path or a key is empty, if there are no keys, and
// if none of the Go types that the scheme has for those kinds and versions has such a list,
// whose elements have all the keys. Of a kind without a Go type, any path may be one.
//
// Keys in the patchMergeKey tags of a Go type, which Kubernetes' own types have, need no
// declaration. For lists without keys see "Which list element is which" in the package
// documentation.
func ListMapKeys(path string, keys ...string) Option {
	return func(h *handler) {
		h.listKeys.declared = append(h.listKeys.declared, declaredKeys{path, keys})
	}
}

// ListMapKeysOf takes all list-map keys from the schemas in definitions, of each version for
// the requests of that version. The text is YAML or JSON, of one or of several
// CustomResourceDefinitions. [ListMapKeys] overrides them for the same list. It is an
// error if a definition has no schema.
func ListMapKeysOf(definitions []byte) Option {
	return func(h *handler) {
		found, err := crd.Read(definitions)
		for _, d := range found {
			err = errors.Join(err, h.listKeys.read(d))
		}
		if err != nil {
			h.errs = append(h.errs, fmt.Errorf("admission: %w", err))
		}
	}
}

// prepareListKeys puts what [ListMapKeys] declares over the definitions. It is an error if
// no object of the handler can have such a list.
func (h *handler) prepareListKeys() {
	l, types := &h.listKeys, h.types()
	for _, d := range l.declared {
		err := l.all.Add(d.path, d.keys...)
		for _, tree := range l.defined {
			err = cmp.Or(err, tree.Add(d.path, d.keys...))
		}
		if err != nil {
			h.errs = append(h.errs, fmt.Errorf("admission: %w", err))
			continue
		}
		var errs []error
		for _, t := range types {
			if err := fieldpath.CheckKeys(t, d.path, d.keys); err != nil {
				errs = append(errs, fmt.Errorf("admission: ListMapKeys %q: %s: %w", d.path, t, err))
			}
		}
		if len(errs) == len(types) {
			h.errs = append(h.errs, errs...)
		}
	}
}

// types returns the Go types of the objects that functions are called for; none if not
// all of them are known.
func (h *handler) types() (types []reflect.Type) {
	for _, f := range h.functions {
		versions := h.versionsOf(f)
		if len(versions) == 0 || f.representation == nil {
			return nil
		}
		for _, version := range versions {
			obj, err := h.scheme.New(f.kind.GroupKind().WithVersion(version))
			if err != nil {
				return nil
			}
			if t := reflect.TypeOf(obj).Elem(); !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	return types
}

// listKeys are the keys of the lists of all kinds.
type listKeys struct {
	declared []declaredKeys
	all      listkeys.Tree                              // of what is declared
	defined  map[schema.GroupVersionKind]*listkeys.Tree // of a definition, and over it what is declared
}

type declaredKeys struct {
	path string
	keys []string
}

// of returns the keys of the lists of a kind.
func (l *listKeys) of(kind schema.GroupVersionKind) *listkeys.Tree {
	if t := l.defined[kind]; t != nil {
		return t
	}
	return &l.all
}

// listKeys returns the keys of the lists of the request's object. Those in the tags of the
// Go type hold if nothing else is declared.
func (c *call) listKeys(kind schema.GroupVersionKind, as representation) *listkeys.Tree {
	declared := c.handler.listKeys.of(c.kind)
	if t, ok := as.(*typed); ok && kind == c.kind {
		return declared.Over(t.listKeys)
	}
	return declared
}

func (l *listKeys) read(d *crd.Definition) error {
	found := false
	for _, v := range d.Spec.Versions {
		if len(v.Schema.OpenAPIV3Schema) == 0 {
			continue
		}
		found = true
		tree := &listkeys.Tree{}
		tree.AddSchema(v.Schema.OpenAPIV3Schema)
		if l.defined == nil {
			l.defined = map[schema.GroupVersionKind]*listkeys.Tree{}
		}
		l.defined[d.GroupKind().WithVersion(v.Name)] = tree
	}
	if !found {
		return fmt.Errorf("%s has no schema", d)
	}
	return nil
}

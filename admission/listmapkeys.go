package admission

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/crd"
	"github.com/crdkit/crdkit/internal/listkeys"
)

// ListMapKeys declares the keys that identify the elements of a list, like
// x-kubernetes-list-map-keys in a schema. By these keys, the handler recognizes an element that a
// function of [Mutate] edited or moved, and preserves the fields of the element that the Go type
// does not have. See "What is preserved" in the package documentation for lists without keys.
//
// The path is a list of field names joined by dots, such as spec.toppings. It has no indexes, so
// spec.menus.toppings is the list toppings in each element of spec.menus. The name * stands for any
// name. The path is in the version of the request, even if the function is for another version, and
// applies to all kinds that the handler serves. If several options declare the same list, the last
// one takes effect. Lists of Kubernetes' own types, and of your Go types with a patchMergeKey tag,
// need no declaration.
//
// Keys are compared exactly, so an element whose key http_proxy becomes HTTP_PROXY is another
// element. A missing key has its default in the schema, or else an empty value. Several elements
// with equal keys are matched with each other as in a list without keys.
//
// [NewHandler] panics in these cases:
//
//   - The path, a name in it or a key is empty, the path contains brackets, or there are no
//     keys.
//   - In the Go types of the served kinds and versions, the path leads to no list whose
//     elements have all keys. If the scheme lacks a type for a served kind and version, any
//     path is valid.
func ListMapKeys(path string, keys ...string) Option {
	return func(h *handler) {
		h.listKeys.declared = append(h.listKeys.declared, declaredKeys{path, keys})
	}
}

// ListMapKeysOf declares the list-map keys in the schemas of one or several
// CustomResourceDefinitions (CRDs), given as YAML or JSON. The keys of each version apply to
// requests in that version. [ListMapKeys] overrides them for the same list. [NewHandler]
// panics if the CRDs cannot be read, or if a CRD has no schema.
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

// prepareListKeys adds the keys of [ListMapKeys] to the keys of the CRDs. It adds an error if
// no object of the handler can have such a list.
func (h *handler) prepareListKeys() {
	l, types := &h.listKeys, h.types()
	for _, d := range l.declared {
		err := l.all.AddFor(types, d.path, d.keys...)
		for _, tree := range l.defined {
			err = cmp.Or(err, tree.Add(d.path, d.keys...))
		}
		if err != nil {
			h.errs = append(h.errs, fmt.Errorf("admission: %w", err))
		}
	}
}

// types returns the Go types of the objects for which functions are called, with nil for an unknown
// one, or none if not even all kinds are known.
func (h *handler) types() (types []reflect.Type) {
	for _, f := range h.functions {
		versions := h.versionsOf(f)
		if len(versions) == 0 || f.representation == nil {
			return nil
		}
		for _, version := range versions {
			if t := h.scheme.AllKnownTypes()[f.kind.GroupKind().WithVersion(version)]; !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	return types
}

// listKeys are the keys of the lists of all kinds.
type listKeys struct {
	declared []declaredKeys
	all      listkeys.Tree                              // of ListMapKeys
	defined  map[schema.GroupVersionKind]*listkeys.Tree // of the CRDs, overridden by ListMapKeys
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

// listKeys returns the keys of the lists of the request's object. Declared keys override the
// keys in the tags of the Go type.
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

package conversion

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ListMapKeys says which keys identify the elements of a list of the hub: what its schema
// says in x-kubernetes-list-map-keys. The path is one of names joined by dots,
// such as spec.toppings; the elements of lists on the way are not named in it. It is a
// fault if the path or a key is empty, and if there are no keys.
func ListMapKeys(path string, keys ...string) LosslessOption {
	return func(l *lossless) {
		names := strings.Split(path, ".")
		if slices.Contains(names, "") || len(keys) == 0 || slices.Contains(keys, "") {
			l.fault("the path %q and the keys %q of a list must not be empty", path, keys)
			return
		}
		at := &l.lists
		for _, name := range names {
			at = at.child(name)
		}
		at.keys = keys
	}
}

// ListMapKeysOf takes all list-map keys from the hub's schema in a definition. It is a
// fault if that has another kind, or no schema of the hub version. Of two options that
// speak of the same list, the last counts.
func ListMapKeysOf(crd *apiextensionsv1.CustomResourceDefinition) LosslessOption {
	return func(l *lossless) {
		if crd == nil {
			l.fault("the CustomResourceDefinition is nil")
			return
		}
		if crd.Spec.Group != l.group || crd.Spec.Names.Kind != l.kind {
			l.fault("CustomResourceDefinition %s is of another kind", crd.Name)
			return
		}
		for _, v := range crd.Spec.Versions {
			if v.Name == l.hub && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				l.lists.read(v.Schema.OpenAPIV3Schema)
				return
			}
		}
		l.fault("CustomResourceDefinition %s has no schema of version %s", crd.Name, l.hub)
	}
}

// listKeys is a tree of the fields that lead to lists with keys.
type listKeys struct {
	keys     []string             // if this is such a list
	children map[string]*listKeys // by name; "" is any name
}

func (k *listKeys) child(name string) *listKeys {
	if k.children == nil {
		k.children = map[string]*listKeys{}
	}
	if k.children[name] == nil {
		k.children[name] = &listKeys{}
	}
	return k.children[name]
}

// at returns the keys of the list at a path.
func (k *listKeys) at(path []string) []string {
	for _, name := range path {
		next := k.children[name]
		if next == nil {
			next = k.children[""]
		}
		if next == nil {
			return nil
		}
		k = next
	}
	return k.keys
}

func (k *listKeys) read(s *apiextensionsv1.JSONSchemaProps) {
	if len(s.XListMapKeys) > 0 {
		k.keys = s.XListMapKeys
	}
	for name, property := range s.Properties {
		k.child(name).read(&property)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		k.child("").read(s.AdditionalProperties.Schema)
	}
	if s.Items != nil && s.Items.Schema != nil {
		k.read(s.Items.Schema)
	}
}

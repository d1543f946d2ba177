package schema

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// Prune takes away, in place, the fields that the schema does not have, and returns
// their paths, sorted, as in spec.toppings[0].colour. It keeps apiVersion, kind and
// metadata, at the root and in embedded resources, and what
// x-kubernetes-preserve-unknown-fields protects. It does nothing if the whole
// definition has preserveUnknownFields. The object is of this version, whatever its
// apiVersion says.
//
// Two things surprise: additionalProperties: true keeps a key but prunes everything
// below it; and what is protected reaches through lists, but ends at a field that has
// properties of its own
// (apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go).
func (v *Version) Prune(object map[string]any) (pruned []string) {
	v.mustExist()
	if v.definition.crd.Spec.PreserveUnknownFields {
		return nil
	}
	return v.prune(object)
}

func (s *steps) prune(object map[string]any) (pruned []string) {
	return pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Package pipeline is what packages schema, offline and breaking do to an object alike: the
// steps that need schemas alone, the settings of a request, and its limits.
package pipeline

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schemas are the structural schemas of a definition.
type Schemas struct {
	Kind                  schema.GroupKind
	PreserveUnknownFields bool
	ByVersion             map[string]*structuralschema.Structural
}

// NewSchemas collects the schemas of a definition. structural returns that of a version.
func NewSchemas(crd *apiextensionsv1.CustomResourceDefinition, structural func(version string) *structuralschema.Structural) Schemas {
	s := Schemas{
		Kind:                  schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
		PreserveUnknownFields: crd.Spec.PreserveUnknownFields,
		ByVersion:             make(map[string]*structuralschema.Structural, len(crd.Spec.Versions)),
	}
	for i := range crd.Spec.Versions {
		version := crd.Spec.Versions[i].Name
		s.ByVersion[version] = structural(version)
	}
	return s
}

// Coercion is the way in which an object is coerced: unstructuredSchemaCoercer of
// customresource_handler.go.
type Coercion struct {
	DropInvalidMetadata bool // instead of failing
	RepairGeneration    bool
	Track               bool // return the paths of unknown fields
}

// Coerce does to an object what decoding does to one of a Go type: it validates and
// prunes metadata, prunes unknown fields, and removes nulls that are not nullable and
// have no default. It is apply of customresource_handler.go. The schema is that of the
// object's own version.
func (s *Schemas) Coerce(u *unstructured.Unstructured, how Coercion) (unknown []string, err error) {
	kind, foundKind, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, foundAPIVersion, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return nil, err
	}
	metadata, foundMetadata, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields:     how.DropInvalidMetadata,
		ReturnUnknownFieldPaths: how.Track,
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if gv.WithKind(kind).GroupKind() == s.Kind {
		structural := s.ByVersion[gv.Version]
		if !s.PreserveUnknownFields {
			unknown = append(unknown, pruning.PruneWithOptions(u.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: how.Track})...)
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
		}
		err, more := objectmeta.CoerceWithOptions(nil, u.Object, structural, false, objectmeta.CoerceOptions{
			DropInvalidFields:       how.DropInvalidMetadata,
			ReturnUnknownFieldPaths: how.Track,
		})
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
		if how.RepairGeneration && metadata != nil && metadata.Generation == 0 {
			metadata.Generation = 1
		}
	}
	if foundKind {
		u.SetKind(kind)
	}
	if foundAPIVersion {
		u.SetAPIVersion(apiVersion)
	}
	if foundMetadata {
		if err := objectmeta.SetObjectMeta(u.Object, metadata); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// Restore does, in place, what the server does to an object that it has decoded from
// storage, before it is converted: it is coerced, and gets its defaults, by the schema of
// the version in which it is stored. The error is the server's own
// (customresource_handler.go, crdConversionRESTOptionsGetter).
func (s *Schemas) Restore(u *unstructured.Unstructured) error {
	if _, err := s.Coerce(u, Coercion{DropInvalidMetadata: true, RepairGeneration: true}); err != nil {
		return InternalError(err.Error())
	}
	s.SetDefaults(u)
	return nil
}

// Convert makes an object one of another version, in place, as the strategy None does: only
// apiVersion changes, and what the schema of that version does not have is pruned
// (apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go).
func (s *Schemas) Convert(u *unstructured.Unstructured, version string) error {
	u.SetAPIVersion(schema.GroupVersion{Group: s.Kind.Group, Version: version}.String())
	_, err := s.Coerce(u, Coercion{})
	return err
}

// SetDefaults is unstructuredDefaulter of customresource_handler.go. Like Coerce, it goes
// by the version and kind in the object.
func (s *Schemas) SetDefaults(u *unstructured.Unstructured) {
	if gvk := u.GroupVersionKind(); gvk.GroupKind() == s.Kind {
		defaulting.Default(u.Object, s.ByVersion[gvk.Version])
	}
}

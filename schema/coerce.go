package schema

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coercion says how an object is coerced: unstructuredSchemaCoercer of
// customresource_handler.go.
type coercion struct {
	dropInvalidMetadata bool // instead of failing
	repairGeneration    bool
	track               bool // return the paths of unknown fields
}

// coerce does to an object what decoding does to one of a Go type: it validates and
// prunes metadata, prunes unknown fields, and removes nulls that are not nullable and
// have no default. It is apply of customresource_handler.go. The schema is that of the
// object's own version.
func (d *Definition) coerce(u *unstructured.Unstructured, how coercion) (unknown []string, err error) {
	kind, foundKind, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, foundAPIVersion, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return nil, err
	}
	metadata, foundMetadata, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields:     how.dropInvalidMetadata,
		ReturnUnknownFieldPaths: how.track,
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if gv.Group == d.crd.Spec.Group && kind == d.crd.Spec.Names.Kind {
		structural := d.structural(gv.Version)
		if !d.crd.Spec.PreserveUnknownFields {
			unknown = append(unknown, pruning.PruneWithOptions(u.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: how.track})...)
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
		}
		err, more := objectmeta.CoerceWithOptions(nil, u.Object, structural, false, objectmeta.CoerceOptions{
			DropInvalidFields:       how.dropInvalidMetadata,
			ReturnUnknownFieldPaths: how.track,
		})
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
		if how.repairGeneration && metadata != nil && metadata.Generation == 0 {
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

// structural is the schema of a version, and nil if there is no such version.
func (d *Definition) structural(version string) *structuralschema.Structural {
	if v := d.versions[version]; v != nil {
		return v.structural
	}
	return nil
}

// setDefaults is unstructuredDefaulter of customresource_handler.go. Like coerce, it goes
// by what the object says that it is.
func (d *Definition) setDefaults(u *unstructured.Unstructured) {
	if gvk := u.GroupVersionKind(); gvk.GroupKind() == d.GroupKind() {
		defaulting.Default(u.Object, d.structural(gvk.Version))
	}
}

// convert converts an object to another version, in place, where that takes no webhook
// (apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go), and coerces it.
func (d *Definition) convert(u *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	from, to := u.GroupVersionKind(), d.GroupKind().WithVersion(version)
	if from.GroupKind() != to.GroupKind() || d.versions[from.Version] == nil {
		return nil, fmt.Errorf("the object is a %s, not a %s of a version that there is", from, to.GroupKind())
	}
	if from != to {
		if d.crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
			return nil, fmt.Errorf("the object has version %s, and a webhook converts it to %s: convert it first", from.Version, to.Version)
		}
		u.SetAPIVersion(to.GroupVersion().String())
	}
	_, err := d.coerce(u, coercion{})
	return u, err
}

package schema

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coerce does to an object what decoding does to one of a Go type: it validates and prunes
// metadata, prunes unknown fields, and removes nulls that are neither nullable nor with a
// default. The schema is that of the object's own version. Of a stored object, metadata that
// is invalid is dropped. track returns the paths of unknown fields
// (customresource_handler.go, unstructuredSchemaCoercer).
func (d *Definition) coerce(u *unstructured.Unstructured, stored, track bool) (unknown []string, err error) {
	kind, foundKind, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, foundAPIVersion, err := unstructured.NestedString(u.Object, "apiVersion")
	if err != nil {
		return nil, err
	}
	metadata, foundMetadata, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields:     stored,
		ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	if gv.WithKind(kind).GroupKind() == d.GroupKind() {
		structural := d.structural(gv.Version)
		if !d.crd.Spec.PreserveUnknownFields {
			unknown = append(unknown, pruning.PruneWithOptions(u.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
			defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
		}
		err, more := objectmeta.CoerceWithOptions(nil, u.Object, structural, false, objectmeta.CoerceOptions{
			DropInvalidFields:       stored,
			ReturnUnknownFieldPaths: track,
		})
		if err != nil {
			return nil, err
		}
		unknown = append(unknown, more...)
		if stored && metadata != nil && metadata.Generation == 0 {
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

// structural returns the schema of a version, or nil if there is none.
func (d *Definition) structural(version string) *structuralschema.Structural {
	if v := d.versions[version]; v != nil {
		return v.structural
	}
	return nil
}

// setDefaults sets the defaults of the object's own version
// (customresource_handler.go, unstructuredDefaulter).
func (d *Definition) setDefaults(u *unstructured.Unstructured) {
	if gvk := u.GroupVersionKind(); gvk.GroupKind() == d.GroupKind() {
		defaulting.Default(u.Object, d.structural(gvk.Version))
	}
}

// restore does, in place, what the server does to an object that it has decoded from storage:
// it is coerced and gets its defaults in the version in which it is stored, and is converted
// to this one (customresource_handler.go, crdConversionRESTOptionsGetter).
func (v *Version) restore(u *unstructured.Unstructured) error {
	if _, err := v.definition.coerce(u, true, false); err != nil {
		return internalError(err.Error())
	}
	v.definition.setDefaults(u)
	return v.definition.convert(u, v.name)
}

// convert converts an object to another version, in place, where that takes no webhook: only
// apiVersion changes, and what the schema of that version does not have is pruned
// (apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go).
func (d *Definition) convert(u *unstructured.Unstructured, version string) error {
	if from := u.GroupVersionKind().Version; from != version && d.crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		return fmt.Errorf("schema: the object has version %s, and a webhook converts it to %s: convert it first", from, version)
	}
	u.SetAPIVersion(schema.GroupVersion{Group: d.crd.Spec.Group, Version: version}.String())
	if _, err := d.coerce(u, false, false); err != nil {
		return internalError(err.Error())
	}
	return nil
}

// internalError is an error that the server did not mean to return
// (apiserver/pkg/endpoints/handlers/responsewriters/status.go, ErrorToAPIStatus).
func internalError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonUnknown, Message: message,
	}}
}

// Package coerce does to custom objects what decoding does to objects of a Go type: it removes what the type lacks, and sets
// defaults. Packages schema and scheme/resource share it.
package coerce

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind has the schemas of a kind.
type Kind struct {
	GroupKind schema.GroupKind
	// Structural has the schema of each version. A version without a schema is absent, or nil.
	Structural map[string]*structuralschema.Structural
	// PreserveUnknownFields is that of the CustomResourceDefinition.
	PreserveUnknownFields bool
}

// Coerce validates and prunes the metadata of an object, prunes unknown fields by the schema of the object's own version, and
// removes each null that is not nullable and has no default. Invalid metadata of a stored object is dropped. With track, the
// result has the paths of unknown fields. Of an object of another kind, only the metadata is coerced
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, unstructuredSchemaCoercer).
func (k Kind) Coerce(u *unstructured.Unstructured, stored, track bool) (unknown []string, err error) {
	kind, _, err := unstructured.NestedString(u.Object, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, _, err := unstructured.NestedString(u.Object, "apiVersion")
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
	if gv.WithKind(kind).GroupKind() == k.GroupKind {
		structural := k.Structural[gv.Version]
		if !k.PreserveUnknownFields {
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
	if foundMetadata {
		if err := objectmeta.SetObjectMeta(u.Object, metadata); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// Default sets the defaults of the object's own version (customresource_handler.go, unstructuredDefaulter).
func (k Kind) Default(u *unstructured.Unstructured) {
	if gvk := u.GroupVersionKind(); gvk.GroupKind() == k.GroupKind {
		defaulting.Default(u.Object, k.Structural[gvk.Version])
	}
}

// Validators returns the schema of a version, which may be nil, and the validators of its objects and of their status. The
// latter is nil without a status subresource or a schema of the status (customresource_handler.go, getOrCreateServingInfoFor).
func Validators(v *apiextensionsv1.CustomResourceDefinitionVersion) (props *apiextensions.JSONSchemaProps, object, status validation.SchemaValidator, err error) {
	internal := &apiextensions.CustomResourceValidation{}
	if v.Schema != nil {
		err = apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema.DeepCopy(), internal, nil)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	props = internal.OpenAPIV3Schema
	object, _, err = validation.NewSchemaValidator(props)
	if err != nil || props == nil || v.Subresources == nil || v.Subresources.Status == nil {
		return props, object, nil, err
	}
	if ofStatus, ok := props.Properties["status"]; ok {
		status, _, err = validation.NewSchemaValidator(&ofStatus)
	}
	return props, object, status, err
}

// Decoder coerces the objects that another decoder decodes (customresource_handler.go, schemaCoercingDecoder).
type Decoder struct {
	runtime.Decoder
	// Of returns the kind of an object.
	Of func(*unstructured.Unstructured) Kind
	// Stored objects may have invalid metadata, which is dropped.
	Stored bool
	// Strict makes unknown fields strict decoding errors.
	Strict bool
}

func (d Decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	var problems []error
	if err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			return nil, gvk, err
		}
		problems = strict.Errors()
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unknown, err := d.Of(u).Coerce(u, d.Stored, d.Strict)
		if err != nil {
			return nil, gvk, err
		}
		for _, path := range unknown {
			problems = append(problems, fmt.Errorf(`unknown field "%s"`, path))
		}
	}
	if d.Strict && len(problems) > 0 {
		return obj, gvk, runtime.NewStrictDecodingError(problems)
	}
	return obj, gvk, nil
}

package schema

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// checkDefinition returns the server's error if it would not create the definition, or, if it exists,
// would not accept an update that does not change it.
func checkDefinition(crd *apiextensionsv1.CustomResourceDefinition, exists bool) error {
	internal, err := prepareDefinition(crd)
	if err != nil {
		return err
	}
	how := crdvalidation.ValidateCustomResourceDefinition
	if exists {
		internal.ResourceVersion = "1" // what is updated has one
		how = func(ctx context.Context, obj *apiextensions.CustomResourceDefinition) field.ErrorList {
			return crdvalidation.ValidateCustomResourceDefinitionUpdate(ctx, obj, obj.DeepCopy())
		}
	}
	errs, err := validateDefinition(internal, how)
	if err != nil {
		return fmt.Errorf("schema: CustomResourceDefinition %s: %w", crd.Name, err)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(apiextensions.Kind("CustomResourceDefinition"), crd.Name, errs)
	}
	return nil
}

// prepareDefinition returns a definition as the server validates it when it is created
// (apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
// PrepareForCreate). The managedFields are the server's own, and a namespace is removed
// (apiserver/pkg/registry/rest/meta.go, EnsureObjectNamespaceMatchesRequestNamespace).
func prepareDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), internal, nil); err != nil {
		return nil, fmt.Errorf("schema: CustomResourceDefinition %s: %w", crd.Name, err)
	}
	internal.Namespace, internal.ManagedFields = "", nil
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, v := range internal.Spec.Versions {
		if v.Storage {
			internal.Status.StoredVersions = []string{v.Name}
			break
		}
	}
	return internal, nil
}

// validateDefinition calls the server's own validation of a definition, and returns an error where
// the server breaks off the connection because the validation panics, as cel.ValidFieldPath does
// for a path that leads below additionalProperties: true
// (apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go).
func validateDefinition(crd *apiextensions.CustomResourceDefinition, how func(context.Context, *apiextensions.CustomResourceDefinition) field.ErrorList) (errs field.ErrorList, err error) {
	defer func() {
		if p := recover(); p != nil {
			errs, err = nil, fmt.Errorf("the server's validation panics: %v", p)
		}
	}()
	return how(context.Background(), crd), nil
}

// eachWarning calls f with each warning that the server gives when it creates a definition, and
// with the field that it is about. The server gives only the words, and does not warn of sets
// before 1.37 (apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
// WarningsOnCreate).
func eachWarning(crd *apiextensions.CustomResourceDefinition, f func(path, message string)) {
	compatibility := environment.DefaultCompatibilityVersion()
	eachSchema(crd, func(path string, s *apiextensions.JSONSchemaProps) {
		// Whether a format is known depends on the type, and a wrong type is a problem already.
		if slices.Contains([]string{"", "object", "array", "string", "integer", "number", "boolean"}, s.Type) {
			format := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
			for _, unknown := range validation.GetUnrecognizedFormats(format, compatibility) {
				f(path+".format", fmt.Sprintf("unrecognized format %q", unknown))
			}
		}
		if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
			if t := s.Items.Schema.Type; t == "object" || t == "array" {
				f(path+".x-kubernetes-list-type", fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", t))
			}
		}
	})
}

// eachSchema calls f with each schema in a definition, outer ones first, and with its path. It
// leaves out what no definition may have, such as patternProperties
// (apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, SchemaHas, which
// has no paths).
func eachSchema(crd *apiextensions.CustomResourceDefinition, f func(path string, s *apiextensions.JSONSchemaProps)) {
	if v := crd.Spec.Validation; v != nil {
		walkSchema("spec.validation.openAPIV3Schema", v.OpenAPIV3Schema, f)
	}
	for i, version := range crd.Spec.Versions {
		if v := version.Schema; v != nil {
			walkSchema(fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), v.OpenAPIV3Schema, f)
		}
	}
}

func walkSchema(path string, s *apiextensions.JSONSchemaProps, f func(path string, s *apiextensions.JSONSchemaProps)) {
	if s == nil {
		return
	}
	f(path, s)
	if s.Items != nil {
		walkSchema(path+".items", s.Items.Schema, f)
	}
	if s.AdditionalProperties != nil {
		walkSchema(path+".additionalProperties", s.AdditionalProperties.Schema, f)
	}
	for name, child := range s.Properties {
		walkSchema(path+".properties["+name+"]", &child, f)
	}
	walkSchema(path+".not", s.Not, f)
	for name, list := range map[string][]apiextensions.JSONSchemaProps{"allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf} {
		for i := range list {
			walkSchema(path+"."+name+"["+strconv.Itoa(i)+"]", &list[i], f)
		}
	}
}

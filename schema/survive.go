package schema

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check returns the server's error if it would not take the definition.
func check(crd *apiextensionsv1.CustomResourceDefinition) error {
	internal, err := prepare(crd)
	if err != nil {
		return err
	}
	how := crdvalidation.ValidateCustomResourceDefinition
	if crd.Spec.PreserveUnknownFields {
		internal.ResourceVersion = "1" // what is updated has one
		how = func(ctx context.Context, obj *apiextensions.CustomResourceDefinition) field.ErrorList {
			return crdvalidation.ValidateCustomResourceDefinitionUpdate(ctx, obj, obj.DeepCopy())
		}
	}
	errs, err := validate(internal, how)
	if err != nil {
		return fmt.Errorf("schema: CustomResourceDefinition %s: %w", crd.Name, err)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(apiextensions.Kind("CustomResourceDefinition"), crd.Name, errs)
	}
	return nil
}

// prepare returns a definition as the server validates it when it is created
// (apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
// PrepareForCreate). The managedFields are the server's own.
func prepare(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), internal, nil); err != nil {
		return nil, fmt.Errorf("schema: CustomResourceDefinition %s: %w", crd.Name, err)
	}
	internal.ManagedFields = nil
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, v := range internal.Spec.Versions {
		if v.Storage {
			internal.Status.StoredVersions = []string{v.Name}
			break
		}
	}
	return internal, nil
}

// validate calls the server's own validation of a definition, and returns an error if it
// panics. The server breaks off the connection then.
//
// The known cause is cel.ValidFieldPath (apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go).
// It follows the fieldPath of a rule, and the jsonPath of a selectable field, through the
// schema, and fails where there is none: below additionalProperties that are true or
// false. The path of a selectable field does so at once in a schema that cannot be read as
// structural.
func validate(crd *apiextensions.CustomResourceDefinition, how func(context.Context, *apiextensions.CustomResourceDefinition) field.ErrorList) (errs field.ErrorList, err error) {
	defer func() {
		if p := recover(); p != nil {
			errs, err = nil, fmt.Errorf("the server's validation panics: %v", p)
		}
	}()
	return how(context.Background(), crd), nil
}

// deadly removes from a definition the paths at which the server's validation panics, and
// returns where they were.
func deadly(crd *apiextensions.CustomResourceDefinition) (fields []string) {
	eachSchema(crd, func(at string, s *apiextensions.JSONSchemaProps) {
		for i := range s.XValidations {
			if path := &s.XValidations[i].FieldPath; *path != "" && panics(s, *path, true) {
				*path = ""
				fields = append(fields, fmt.Sprintf("%s.x-kubernetes-validations[%d].fieldPath", at, i))
			}
		}
	})
	selectable := func(at string, all *[]apiextensions.SelectableField, v *apiextensions.CustomResourceValidation) {
		if v == nil || v.OpenAPIV3Schema == nil {
			return
		}
		var rest []apiextensions.SelectableField
		for i, f := range *all {
			if f.JSONPath != "" && panics(v.OpenAPIV3Schema, f.JSONPath, false) {
				fields = append(fields, fmt.Sprintf("%s.selectableFields[%d].jsonPath", at, i))
				continue
			}
			rest = append(rest, f)
		}
		*all = rest
	}
	selectable("spec", &crd.Spec.SelectableFields, crd.Spec.Validation)
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		selectable(fmt.Sprintf("spec.versions[%d]", i), &v.SelectableFields, v.Schema)
	}
	return fields
}

// panics reports whether the server panics as it follows a path through a schema. That of a
// rule it follows only if the schema can be read as structural.
func panics(s *apiextensions.JSONSchemaProps, path string, ofRule bool) (yes bool) {
	structural, err := structuralschema.NewStructural(s)
	if err != nil && ofRule {
		return false
	}
	defer func() { yes = recover() != nil }()
	_, _, _ = cel.ValidFieldPath(path, structural, cel.WithFieldPathAllowArrayNotation(ofRule)) // an error is not a panic
	return false
}

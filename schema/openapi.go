package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Schema is an OpenAPI v3 schema without a CRD. Its methods do what the API server does with the
// schema of a version. They do not check apiVersion, kind and metadata, because a Schema has no
// group, kind and scope. A Schema is immutable, and safe for concurrent use.
type Schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator // nil if there are no rules
}

// ParseSchema compiles one schema in YAML or JSON, in the form of openAPIV3Schema in a CRD: it is
// structural, and describes a whole object. The error lists all reasons for which the server would
// refuse the schema.
func ParseSchema(data []byte) (*Schema, error) {
	var schemas []*Schema
	err := eachObject(data, func(o *object) error {
		s, err := o.parseSchema()
		schemas = append(schemas, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(schemas) != 1 {
		return nil, fmt.Errorf("schema: found %d schemas: want one", len(schemas))
	}
	return schemas[0], nil
}

// parseSchema compiles a schema as that of a definition that has nothing else.
func (o *object) parseSchema() (*Schema, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(o.json), []byte("{")) {
		return nil, errors.New("the value is not an object")
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	strict, err := kjson.UnmarshalStrict(o.json, props)
	if err := errors.Join(slices.Concat(strict, o.duplicates, []error{err})...); err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "schemas", Kind: "Schema"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		}},
	}}
	crd.Name = "schemas.example.com"
	d, err := New(crd)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		return nil, schemaErrors(status.Status().Details.Causes)
	} else if err != nil {
		return nil, err
	}
	return &d.Version("v1").Schema, nil
}

// schemaErrors joins errors of a definition, with paths that begin at the root of its schema.
func schemaErrors(causes []metav1.StatusCause) error {
	const root = "spec.validation.openAPIV3Schema"
	var errs []error
	for _, cause := range causes {
		text := strings.ReplaceAll(cause.Field+": "+cause.Message, root+".", "")
		errs = append(errs, errors.New(strings.TrimPrefix(text, root+": ")))
	}
	return errors.Join(errs...)
}

// Structural returns the structural schema: see [Version.Structural].
func (s *Schema) Structural() *structuralschema.Structural { return s.structural }

// Prune removes the fields that the schema lacks from the object, and returns their paths: see
// [Version.Prune].
func (s *Schema) Prune(object map[string]any) (pruned []string) {
	return pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Default sets the defaults of the schema in the object, and removes nulls: see
// [Version.Default].
func (s *Schema) Default(object map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
}

// Validate returns the errors of the schema, of embedded resources, of lists that are sets or maps,
// and of the CEL rules, as [Version.Validate] does.
func (s *Schema) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, s.validator)
	return s.validateRest(ctx, object, nil, nil, errs)
}

// ValidateUpdate validates an object that replaces an old object. Errors of unchanged parts are
// dropped: see [Version.ValidateUpdate].
func (s *Schema) ValidateUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	correlation := s.correlate(object, old)
	errs := validation.ValidateCustomResourceUpdate(nil, object, old, s.validator, validation.WithRatcheting(correlation))
	return s.validateRest(ctx, object, old, correlation, errs)
}

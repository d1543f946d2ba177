package schema

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Validate returns what creating the object would report, in the server's order: the
// faults of apiVersion and kind, and if there are none, those of metadata, of the schema,
// of the numbers that the scale subresource reads, of embedded resources, of lists that
// are sets or maps, and of the CEL rules. As on the server, the rules are not run if a
// fault of the schema could mislead them, and one more error says so
// (apiextensions-apiserver/pkg/registry/customresource/strategy.go, Validate, and
// apiserver/pkg/registry/rest/create.go, ValidateCreate).
//
// The object is as it is after pruning and defaulting, and does not change. It holds
// JSON as [unstructured.Unstructured] does: int64, float64, string, bool, nil, []any and
// map[string]any, and no other types. An object without a namespace, of a kind that has
// one, is taken to be in the namespace of the request. The context bounds the rules.
func (v *Version) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	if err := v.unknown(); err != nil {
		return field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), v.name, v.definition.names)}
	}
	return v.validateCreate(ctx, &unstructured.Unstructured{Object: v.inNamespace(object)})
}

// inNamespace returns the object, or a copy of its top with the namespace that the server
// would give it (apiserver/pkg/registry/rest/meta.go,
// EnsureObjectNamespaceMatchesRequestNamespace).
func (v *Version) inNamespace(object map[string]any) map[string]any {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap && object["metadata"] != nil {
		return object
	}
	namespace, _ := metadata["namespace"].(string)
	if v.namespaced() == (namespace != "") {
		return object
	}
	object = maps.Clone(object)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	if delete(metadata, "namespace"); v.namespaced() {
		metadata["namespace"] = metav1.NamespaceDefault
	}
	if object == nil {
		object = map[string]any{}
	}
	object["metadata"] = metadata
	return object
}

func (v *Version) namespaced() bool {
	return v.definition.crd.Spec.Scope == apiextensionsv1.NamespaceScoped
}

// validateCreate is ValidateCreate of rest/create.go.
func (v *Version) validateCreate(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := v.validateNew(ctx, u)
	if len(errs) == 0 {
		errs = metavalidation.ValidateObjectMetaAccessor(u, v.namespaced(), pathSegment, field.NewPath("metadata"))
	}
	return errs
}

// pathSegment is validatePathSegment of rest/create.go.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// validateNew is Validate of customresource/strategy.go.
func (v *Version) validateNew(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	errs := v.validateTypeMeta(u)
	if len(errs) == 0 {
		errs = append(errs, v.validateMetadata(ctx, u)...)
		errs = append(errs, validation.ValidateCustomResource(nil, u.Object, v.schema)...)
		errs = append(errs, v.validateScaleSpec(u)...)
		errs = append(errs, v.validateScaleStatus(u)...)
	}
	return v.validateRest(ctx, u.Object, errs)
}

// validateRest adds to the errors of the schema those that come after them.
func (s *steps) validateRest(ctx context.Context, object map[string]any, errs field.ErrorList) field.ErrorList {
	errs = append(errs, objectmeta.Validate(ctx, nil, object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if s.cel == nil {
		return errs
	}
	if blocked(errs) {
		return append(errs, rulesNotRun())
	}
	ruleErrs, _ := s.cel.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, ruleErrs...)
}

// blocked says whether the errors are such that the rules are not run: hasBlockingErr of
// customresource/strategy.go.
func blocked(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

func rulesNotRun() *field.Error {
	return field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
}

// validateTypeMeta is ValidateTypeMeta of customresource/validator.go.
func (v *Version) validateTypeMeta(u *unstructured.Unstructured) (errs field.ErrorList) {
	if kind := v.definition.crd.Spec.Names.Kind; u.GetKind() != kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), u.GetKind(), fmt.Sprintf("must be %v", kind)))
	}
	if apiVersion := v.apiVersion(); u.GetAPIVersion() != apiVersion {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(), fmt.Sprintf("must be %v", apiVersion)))
	}
	return errs
}

func (v *Version) apiVersion() string { return v.definition.crd.Spec.Group + "/" + v.name }

// validateMetadata is validateObjectMetaDeclaratively of customresource/validator.go.
func (v *Version) validateMetadata(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	metadata, errs := objectMeta(u)
	if len(errs) > 0 {
		return errs
	}
	return metavalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, metadata, nil, v.namespaced(), metavalidation.NameIsDNSSubdomain,
		field.NewPath("metadata"), utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta))
}

// objectMeta is getObjectMeta of customresource/validator.go.
func objectMeta(u *unstructured.Unstructured) (*metav1.ObjectMeta, field.ErrorList) {
	raw := u.Object["metadata"]
	if raw == nil {
		return &metav1.ObjectMeta{}, nil
	}
	metadata, ok := raw.(map[string]any)
	if !ok {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata"), raw, fmt.Sprintf("expected map[string]interface{}, got %T", raw))}
	}
	typed := &metav1.ObjectMeta{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, typed); err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata"), raw, err.Error())}
	}
	return typed, nil
}

// validateScaleSpec is ValidateScaleSpec of customresource/validator.go.
func (v *Version) validateScaleSpec(u *unstructured.Unstructured) field.ErrorList {
	if v.scale == nil {
		return nil
	}
	return validateReplicas(u, v.scale.SpecReplicasPath)
}

// validateScaleStatus is ValidateScaleStatus of customresource/validator.go.
func (v *Version) validateScaleStatus(u *unstructured.Unstructured) field.ErrorList {
	if v.scale == nil {
		return nil
	}
	errs := validateReplicas(u, v.scale.StatusReplicasPath)
	if path := v.scale.LabelSelectorPath; path != nil {
		selector, _, err := unstructured.NestedString(u.Object, fields(*path)...)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(u *unstructured.Unstructured, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(u.Object, fields(path)...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}

// fields splits a JSON path of the scale subresource, such as .spec.replicas.
func fields(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

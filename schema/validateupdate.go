package schema

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// ValidateUpdate returns what replacing the old object would report: see [Version.Update]
// and, for the objects, [Version.Validate]. Faults of parts that have not changed are left
// out; those of rules become warnings, which go to the recorder of the context, if it has
// one (k8s.io/apiserver/pkg/warning). What of the metadata an update takes from the old
// object, such as the uid, need not be there
// (apiserver/pkg/registry/rest/update.go, BeforeUpdate).
func (v *Version) ValidateUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	return v.validateStep(ctx, object, old, false)
}

// ValidateStatusUpdate is [Version.ValidateUpdate] by way of the status subresource: see
// [Version.UpdateStatus].
func (v *Version) ValidateStatusUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	return v.validateStep(ctx, object, old, true)
}

func (v *Version) validateStep(ctx context.Context, object, old map[string]any, status bool) field.ErrorList {
	if err := v.unknown(); err != nil {
		return field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), v.name, v.definition.names)}
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(v.inNamespace(object))}
	was := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(v.inNamespace(old))}
	if was.GetResourceVersion() == "" {
		giveResourceVersion(u, was)
	}
	v.prepare(u, was, status)
	return v.validateReplacement(ctx, u, was, status)
}

// validateReplacement is the validation of BeforeUpdate of rest/update.go.
func (v *Version) validateReplacement(ctx context.Context, u, old *unstructured.Unstructured, status bool) field.ErrorList {
	errs := v.validateCommonFields(u, old)
	if status {
		return append(errs, v.validateStatusUpdate(ctx, u, old)...)
	}
	return append(errs, v.validateUpdate(ctx, u, old)...)
}

// validateCommonFields is validateCommonFields of apiserver/pkg/registry/rest/update.go.
func (v *Version) validateCommonFields(u, old *unstructured.Unstructured) field.ErrorList {
	path := field.NewPath("metadata")
	errs := metavalidation.ValidateObjectMetaAccessor(u, v.namespaced(), pathSegment, path)
	return append(errs, metavalidation.ValidateObjectMetaAccessorUpdate(u, old, path)...)
}

// validateUpdate is ValidateUpdate of customresource/strategy.go. Faults of the schema and
// of the rules are ratcheted where the object has not changed; lists that are sets or maps
// are checked if all lists of the old object were right.
func (v *Version) validateUpdate(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	correlation := v.correlate(u.Object, old.Object)
	errs := v.validateTypeMeta(u)
	if len(errs) == 0 {
		errs = append(errs, v.validateMetadataUpdate(ctx, u, old)...)
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, v.schema, v.ratcheting(correlation)...)...)
		errs = append(errs, v.validateScaleSpec(u)...)
		errs = append(errs, v.validateScaleStatus(u)...)
	}
	return v.validateUpdateRest(ctx, u.Object, old.Object, correlation, errs)
}

// validateUpdateRest adds to the errors of the schema those that come after them.
func (s *steps) validateUpdateRest(ctx context.Context, object, old map[string]any, correlation *common.CorrelatedObject, errs field.ErrorList) field.ErrorList {
	errs = append(errs, objectmeta.Validate(ctx, nil, object, s.structural, false)...)
	if oldErrs := listtype.ValidateListSetsAndMaps(nil, s.structural, old); len(oldErrs) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	}
	return s.validateRules(ctx, object, old, correlation, errs)
}

// validateStatusUpdate is ValidateUpdate of customresource/status_strategy.go. It validates
// the status alone by the schema, but the whole object by the rules.
func (v *Version) validateStatusUpdate(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	correlation := v.correlate(u.Object, old.Object)
	errs := v.validateTypeMeta(u)
	if len(errs) == 0 {
		errs = append(errs, v.validateMetadataUpdate(ctx, u, old)...)
		if status, ok := u.Object["status"]; ok {
			var ratcheting []validation.ValidationOption
			if v.structural != nil {
				ratcheting = v.ratcheting(correlation.Key("status"))
			}
			errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], v.status, ratcheting...)...)
		}
		errs = append(errs, v.validateScaleStatus(u)...)
	}
	if newErrs := listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object); len(newErrs) > 0 {
		if oldErrs := listtype.ValidateListSetsAndMaps(nil, v.structural, old.Object); len(oldErrs) == 0 {
			errs = append(errs, newErrs...)
		}
	}
	return v.validateRules(ctx, u.Object, old.Object, correlation, errs)
}

// ratcheting takes a structural schema: without one, nothing is ratcheted.
func (s *steps) ratcheting(correlation *common.CorrelatedObject) []validation.ValidationOption {
	if s.structural == nil {
		return nil
	}
	return []validation.ValidationOption{validation.WithRatcheting(correlation)}
}

func (s *steps) correlate(object, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
}

// validateRules adds the errors of the rules. A rule that says nothing about the old object
// only warns if the part that it is about has not changed
// (apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, validateExpressions).
func (s *steps) validateRules(ctx context.Context, object, old map[string]any, correlation *common.CorrelatedObject, errs field.ErrorList) field.ErrorList {
	if s.cel == nil {
		return errs
	}
	if blocked(errs) {
		return append(errs, rulesNotRun())
	}
	ruleErrs, _ := s.cel.Validate(ctx, nil, s.structural, object, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlation))
	return append(errs, ruleErrs...)
}

// validateMetadataUpdate is validateObjectMetaUpdateDeclaratively of
// customresource/validator.go.
func (v *Version) validateMetadataUpdate(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	metadata, errs := objectMeta(u)
	if len(errs) > 0 {
		return errs
	}
	oldMetadata, errs := objectMeta(old)
	if len(errs) > 0 {
		return errs
	}
	return metavalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, metadata, oldMetadata, v.namespaced(), nil,
		field.NewPath("metadata"), utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta))
}

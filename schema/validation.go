package schema

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

func (s *compiledSchema) correlate(object, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, old, &model.Structural{Structural: s.structural})
}

// ratcheting forgives errors of what has not changed, in the field that keys lead to. That takes a
// structural schema.
func (s *compiledSchema) ratcheting(correlation *common.CorrelatedObject, keys ...string) []validation.ValidationOption {
	if s.structural == nil {
		return nil
	}
	for _, key := range keys {
		correlation = correlation.Key(key)
	}
	return []validation.ValidationOption{validation.WithRatcheting(correlation)}
}

// validateRest adds to the errors of the schema those of embedded resources, of lists and of
// rules. An object that is created has neither an old object nor a correlation with it.
func (s *compiledSchema) validateRest(ctx context.Context, object, old map[string]any, correlation *common.CorrelatedObject, errs field.ErrorList) field.ErrorList {
	errs = append(errs, objectmeta.Validate(ctx, nil, object, s.structural, false)...)
	errs = append(errs, s.validateLists(object, old)...)
	return s.validateRules(ctx, object, old, correlation, errs)
}

// validateLists validates lists that are sets or maps, unless some list of the old object was
// invalid already.
func (s *compiledSchema) validateLists(object, old map[string]any) field.ErrorList {
	if old != nil && len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) > 0 {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, s.structural, object)
}

// validateRules adds the errors of the rules. A rule that does not mention the old object only
// warns if its part of the object has not changed
// (apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, validateExpressions).
func (s *compiledSchema) validateRules(ctx context.Context, object, old map[string]any, correlation *common.CorrelatedObject, errs field.ErrorList) field.ErrorList {
	switch {
	case s.cel == nil:
		return errs
	case slices.ContainsFunc(errs, preventsRules):
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	case old == nil:
		ruleErrs, _ := s.cel.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
		return append(errs, ruleErrs...)
	}
	ruleErrs, _ := s.cel.Validate(ctx, nil, s.structural, object, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlation))
	return append(errs, ruleErrs...)
}

// preventsRules reports whether the rules are not run because of an error (hasBlockingErr).
func preventsRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

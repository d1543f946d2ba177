package schema

import (
	"cmp"
	"context"
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Prune removes the fields that the schema lacks from the object, and returns their paths in
// sorted order, such as spec.toppings[0].colour. It preserves apiVersion, kind and metadata, at
// the root and in embedded resources, and the fields that x-kubernetes-preserve-unknown-fields
// protects. If the CRD has preserveUnknownFields, Prune does nothing. The object is pruned by
// the schema of this version, whatever its apiVersion is.
//
// (apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go)
func (v *Version) Prune(object map[string]any) (pruned []string) {
	v.mustExist()
	if v.definition.crd.Spec.PreserveUnknownFields {
		return nil
	}
	return pruning.PruneWithOptions(object, v.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Default first removes each null field that is not nullable and has no default, but no null item
// of a list. It then sets each default whose parent exists. The server prunes first: see
// [Version.Prune].
//
// (apiextensions-apiserver/pkg/apiserver/schema/defaulting)
func (v *Version) Default(object map[string]any) {
	v.mustExist()
	if !v.definition.crd.Spec.PreserveUnknownFields {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	}
	defaulting.Default(object, v.structural)
}

// Validate returns the errors of a create request, in the server's order:
//
//   - the errors of apiVersion and kind. If there are any, Validate returns no others.
//   - the errors of metadata, of the schema, of the scale subresource, of embedded resources,
//     and of lists that are sets or maps.
//   - the errors of the CEL rules, or one error which reports that they do not run because an error
//     of the schema could mislead them.
//
// The object must be pruned and defaulted, and is not changed. Its values have the types of
// [unstructured.Unstructured]: int64, float64, string, bool, nil, []any and map[string]any. If
// the object of a namespaced kind has no namespace, the namespace is default. The rules stop
// when the context is done.
//
// (apiextensions-apiserver/pkg/registry/customresource/strategy.go, Validate, and
// apiserver/pkg/registry/rest/create.go, ValidateCreate)
func (v *Version) Validate(ctx context.Context, object map[string]any) field.ErrorList {
	if v.unknown() != nil {
		return v.unsupported()
	}
	return rest.ValidateCreate(ctx, v.inNamespace(object), v.strategy(false))
}

// ValidateUpdate returns the errors of an update request that replaces the old object. See
// [Version.Update] for the errors and [Version.Validate] for the objects. In unchanged parts,
// errors of the schema are dropped, and errors of rules become warnings, for the recorder in the
// context if there is one (k8s.io/apiserver/pkg/warning). Metadata that an update copies from the
// old object, such as the uid, may be missing.
//
// (apiserver/pkg/registry/rest/update.go, BeforeUpdate)
func (v *Version) ValidateUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	return v.validateUpdate(ctx, object, old, false)
}

// ValidateStatusUpdate returns the errors of an update of the status subresource. The status of the
// object replaces that of the old object. The schema validates only the status, but all rules run.
// The version must have the subresource. See [Version.ValidateUpdate].
//
// (apiextensions-apiserver/pkg/registry/customresource/status_strategy.go, ValidateUpdate)
func (v *Version) ValidateStatusUpdate(ctx context.Context, object, old map[string]any) field.ErrorList {
	return v.validateUpdate(ctx, object, old, true)
}

func (v *Version) validateUpdate(ctx context.Context, object, old map[string]any, status bool) field.ErrorList {
	if v.unknown() != nil {
		return v.unsupported()
	}
	u, was := v.inNamespace(object), v.inNamespace(old)
	if was.GetResourceVersion() == "" {
		setResourceVersion(u, was)
	}
	s := v.strategy(status)
	// The first call only prepares the object: the second one has its errors in a list.
	prepare := s
	prepare.onlyPrepares = true
	_ = beforeUpdate(ctx, prepare, u.GetNamespace(), u, was)
	return rest.ValidateUpdate(ctx, u, was, s)
}

// unsupported is the error for objects of a version that the definition does not have.
func (v *Version) unsupported() field.ErrorList {
	return field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), v.name, v.definition.names)}
}

// inNamespace returns an object in the namespace that the server would give it. It shares
// everything except metadata with the original.
func (v *Version) inNamespace(object map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: maps.Clone(object)}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		u.Object["metadata"] = maps.Clone(metadata)
	}
	u.SetNamespace(v.defaultNamespace(u))
	return u
}

// defaultNamespace returns the namespace of an object, if none is asked for.
func (v *Version) defaultNamespace(u *unstructured.Unstructured) string {
	if !v.namespaced() {
		return metav1.NamespaceNone
	}
	return cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)
}

func (c *compiled) correlate(object, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, old, &model.Structural{Structural: c.structural})
}

// ratcheting drops errors of unchanged parts, in the field that keys lead to. It needs a structural
// schema.
func (c *compiled) ratcheting(correlation *common.CorrelatedObject, keys ...string) []validation.ValidationOption {
	if c.structural == nil {
		return nil
	}
	for _, key := range keys {
		correlation = correlation.Key(key)
	}
	return []validation.ValidationOption{validation.WithRatcheting(correlation)}
}

// validateRest adds the errors of embedded resources, of lists and of rules to those of the schema.
// A created object has no old object and no correlation.
func (c *compiled) validateRest(ctx context.Context, object, old map[string]any, correlation *common.CorrelatedObject, errs field.ErrorList) field.ErrorList {
	errs = append(errs, objectmeta.Validate(ctx, nil, object, c.structural, false)...)
	errs = append(errs, c.validateLists(object, old)...)
	return c.validateRules(ctx, object, old, correlation, errs)
}

// validateLists validates lists that are sets or maps, unless some list of the old object was
// invalid already.
func (c *compiled) validateLists(object, old map[string]any) field.ErrorList {
	if old != nil && len(listtype.ValidateListSetsAndMaps(nil, c.structural, old)) > 0 {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, c.structural, object)
}

// validateRules adds the errors of the rules. A rule that does not mention the old object only
// warns if its part of the object has not changed
// (apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, validateExpressions).
func (c *compiled) validateRules(ctx context.Context, object, old map[string]any, correlation *common.CorrelatedObject, errs field.ErrorList) field.ErrorList {
	switch {
	case c.cel == nil:
		return errs
	case slices.ContainsFunc(errs, preventsRules):
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	case old == nil:
		ruleErrs, _ := c.cel.Validate(ctx, nil, c.structural, object, nil, celconfig.RuntimeCELCostBudget)
		return append(errs, ruleErrs...)
	}
	ruleErrs, _ := c.cel.Validate(ctx, nil, c.structural, object, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlation))
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

package schema

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

// strategy tells the server's generic code how custom resources are created and updated. The
// server's own strategy imports the client of etcd, so it is rewritten here, method by method
// (apiextensions-apiserver/pkg/registry/customresource, strategy.go, status_strategy.go and
// validator.go).
type strategy struct {
	*crdserverscheme.UnstructuredObjectTyper
	v      *Version
	status bool // an update is of the status subresource
	// An update is prepared, without validation or warnings.
	onlyPrepares bool
}

func (v *Version) strategy(status bool) strategy {
	return strategy{crdserverscheme.NewUnstructuredObjectTyper(), v, status, false}
}

// beforeUpdate prepares and validates an object that replaces an old one in a namespace.
func beforeUpdate(ctx context.Context, s rest.RESTUpdateStrategy, namespace string, u, old *unstructured.Unstructured) error {
	ctx = klog.NewContext(ctx, klog.Logger{}) // the server logs errors that are the same
	return rest.BeforeUpdate(s, genericapirequest.WithNamespace(ctx, namespace), u, old)
}

// GenerateName makes a name as the server does, but with a fixed suffix
// (apiserver/pkg/storage/names/generate.go).
func (strategy) GenerateName(base string) string { return base[:min(len(base), 58)] + "xxxxx" }

func (s strategy) NamespaceScoped() bool                       { return s.v.namespaced() }
func (strategy) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }
func (strategy) Canonicalize(runtime.Object)                   {}

func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	u := obj.(*unstructured.Unstructured)
	if s.v.hasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

func (s strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	u, was := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	if s.status {
		status, ok := u.Object["status"]
		u.Object = was.DeepCopy().Object
		setStatus(u, status, ok)
		return
	}
	if s.v.hasStatus {
		status, ok := was.Object["status"]
		setStatus(u, status, ok)
	}
	if !apiequality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(was)) {
		u.SetGeneration(was.GetGeneration() + 1)
	}
}

// setStatus sets the status, or removes it if the given one is absent.
func setStatus(u *unstructured.Unstructured, status any, ok bool) {
	if delete(u.Object, "status"); ok {
		u.Object["status"] = status
	}
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	m := maps.Clone(u.Object)
	delete(m, "metadata")
	return m
}

func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	u := obj.(*unstructured.Unstructured)
	errs := s.v.validateTypeMeta(u)
	if len(errs) == 0 {
		errs = append(errs, s.v.validateMetadata(ctx, operation.Create, u, nil)...)
		errs = append(errs, validation.ValidateCustomResource(nil, u.Object, s.v.validator)...)
		errs = append(errs, s.v.validateScale(u, false)...)
	}
	return s.v.validateRest(ctx, u.Object, nil, nil, errs)
}

func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	u, was := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	if s.onlyPrepares {
		return nil
	}
	if s.status {
		return s.v.validateStatusUpdate(ctx, u, was)
	}
	correlation := s.v.correlate(u.Object, was.Object)
	errs := s.v.validateTypeMeta(u)
	if len(errs) == 0 {
		errs = append(errs, s.v.validateMetadata(ctx, operation.Update, u, was)...)
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, was.Object, s.v.validator, s.v.ratcheting(correlation)...)...)
		errs = append(errs, s.v.validateScale(u, false)...)
	}
	return s.v.validateRest(ctx, u.Object, was.Object, correlation, errs)
}

// validateStatusUpdate validates only the status by the schema, but the whole object by the rules.
func (v *Version) validateStatusUpdate(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	correlation := v.correlate(u.Object, old.Object)
	errs := v.validateTypeMeta(u)
	if len(errs) == 0 {
		errs = append(errs, v.validateMetadata(ctx, operation.Update, u, old)...)
		if status, ok := u.Object["status"]; ok {
			errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], v.statusValidator, v.ratcheting(correlation, "status")...)...)
		}
		errs = append(errs, v.validateScale(u, true)...)
	}
	errs = append(errs, v.validateLists(u.Object, old.Object)...)
	return v.validateRules(ctx, u.Object, old.Object, correlation, errs)
}

func (v *Version) validateTypeMeta(u *unstructured.Unstructured) (errs field.ErrorList) {
	apiVersion, kind := v.gvk().ToAPIVersionAndKind()
	if u.GetKind() != kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+kind))
	}
	if u.GetAPIVersion() != apiVersion {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(), "must be "+apiVersion))
	}
	return errs
}

// validateMetadata validates the metadata of an object that is created, or that replaces an old
// one.
func (v *Version) validateMetadata(ctx context.Context, op operation.Type, u, old *unstructured.Unstructured) field.ErrorList {
	metadata, errs := objectMeta(u)
	if len(errs) > 0 {
		return errs
	}
	var oldMetadata *metav1.ObjectMeta
	validateName := metavalidation.ValidateNameFunc(metavalidation.NameIsDNSSubdomain)
	if op == operation.Update {
		if oldMetadata, errs = objectMeta(old); len(errs) > 0 {
			return errs
		}
		validateName = nil
	}
	return metavalidation.ValidateObjectMetaDeclaratively(ctx, op, metadata, oldMetadata, v.namespaced(), validateName,
		field.NewPath("metadata"), utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta))
}

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

// validateScale validates what the scale subresource reads, or the part of it that is in the
// status.
func (v *Version) validateScale(u *unstructured.Unstructured, statusOnly bool) (errs field.ErrorList) {
	if v.scale == nil {
		return nil
	}
	if !statusOnly {
		errs = validateReplicas(u, v.scale.SpecReplicasPath)
	}
	errs = append(errs, validateReplicas(u, v.scale.StatusReplicasPath)...)
	if path := v.scale.LabelSelectorPath; path != nil {
		selector, _, err := unstructured.NestedString(u.Object, splitPath(*path)...)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(u *unstructured.Unstructured, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(u.Object, splitPath(path)...)
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

// splitPath splits a JSON path of the scale subresource, such as .spec.replicas.
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

func (v *Version) namespaced() bool {
	return v.definition.crd.Spec.Scope == apiextensionsv1.NamespaceScoped
}

func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return finalizerWarnings(obj.(*unstructured.Unstructured).GetFinalizers(), nil)
}

func (s strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	if s.status || s.onlyPrepares {
		return nil
	}
	return finalizerWarnings(obj.(*unstructured.Unstructured).GetFinalizers(), old.(*unstructured.Unstructured).GetFinalizers())
}

// finalizerWarnings returns the warnings about the names of finalizers that are new.
func finalizerWarnings(finalizers, old []string) (warnings []string) {
	warn := func(name, message string) {
		warnings = append(warnings, fmt.Sprintf("metadata.finalizers: %q: %s", name, message))
	}
	standard := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}
	for _, name := range sets.List(sets.New(finalizers...).Difference(sets.New(old...))) {
		for _, message := range utilvalidation.IsQualifiedName(name) {
			warn(name, message)
		}
		switch {
		case strings.Contains(name, "/") || slices.Contains(standard, name):
		case strings.Contains(name, "."):
			warn(name, "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers")
		default:
			warn(name, "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers")
		}
	}
	return warnings
}

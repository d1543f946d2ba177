package resource

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/apistorage"
	"github.com/crdkit/crdkit/internal/gvk"
)

// strategy creates and updates objects without their status, as the strategy of custom resources
// does (apiextensions-apiserver/pkg/registry/customresource/strategy.go).
type strategy struct {
	rest.DeclarativeValidation // calls the functions of Validate
	names.NameGenerator
	apistorage.Strategy
	versions   []schema.GroupVersion // those served, if there is a status subresource
	namespaced bool
}

func newStrategy(s *runtime.Scheme) strategy {
	return strategy{DeclarativeValidation: rest.DeclarativeValidation{Scheme: s}, NameGenerator: names.SimpleNameGenerator, namespaced: true}
}

var (
	_ rest.RESTCreateUpdateStrategy      = strategy{}
	_ rest.RESTDeleteStrategy            = strategy{}
	_ rest.ResetFieldsStrategy           = strategy{}
	_ rest.DeclarativeValidationStrategy = strategy{}
)

func (s strategy) NamespaceScoped() bool                       { return s.namespaced }
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateObjectMeta(metadata(obj), s.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateUpdate leaves the metadata to rest.BeforeUpdate.
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if status := apistorage.Field(obj, "Status"); status.IsValid() {
		status.SetZero()
	}
	metadata(obj).Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	if status := apistorage.Field(obj, "Status"); status.IsValid() {
		status.Set(apistorage.Field(old.DeepCopyObject(), "Status"))
	}
	m := metadata(obj)
	m.Generation = metadata(old).Generation
	if !apiequality.Semantic.DeepEqual(withoutMetadata(obj), withoutMetadata(old)) {
		m.Generation++
	}
}

// GetResetFields returns the fields that PrepareForUpdate resets, so that they get no owner.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if len(s.versions) == 0 {
		return nil
	}
	return s.reset(fieldpath.MakePathOrDie("status"))
}

func (s strategy) reset(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, gv := range s.versions {
		reset[fieldpath.APIVersion(gv.String())] = fieldpath.NewSet(paths...)
	}
	return reset
}

// statusStrategy writes the status only
// (apiextensions-apiserver/pkg/registry/customresource/status_strategy.go).
type statusStrategy struct{ strategy }

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	apistorage.KeepStatus(obj, old)
}

func (s statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.reset(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func metadata(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// withoutMetadata returns a copy of the body of an object with neither metadata nor status.
func withoutMetadata(obj runtime.Object) any {
	c := gvk.ShallowCopy(apistorage.Body(obj))
	for _, name := range []string{"TypeMeta", "ObjectMeta", "Status"} {
		if f := apistorage.Field(c, name); f.IsValid() {
			f.SetZero()
		}
	}
	return c
}

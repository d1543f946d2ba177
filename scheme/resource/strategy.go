package resource

import (
	"context"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy creates and updates objects without their status, as the strategy of custom resources
// does (apiextensions-apiserver/pkg/registry/customresource/strategy.go).
type strategy struct {
	rest.DeclarativeValidation // calls the functions of Validate
	names.NameGenerator
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

func (s strategy) NamespaceScoped() bool                                   { return s.namespaced }
func (strategy) AllowCreateOnUpdate(context.Context) bool                  { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool             { return false }
func (strategy) Canonicalize(runtime.Object)                               {}
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateObjectMeta(metadata(obj), s.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateUpdate leaves the metadata to rest.BeforeUpdate.
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if status := part(obj, "Status"); status.IsValid() {
		status.SetZero()
	}
	metadata(obj).Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	if status := part(obj, "Status"); status.IsValid() {
		status.Set(part(old.DeepCopyObject(), "Status"))
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
	status, managedFields := reflect.New(part(obj, "Status").Type()).Elem(), metadata(obj).ManagedFields
	status.Set(part(obj, "Status"))
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(old.DeepCopyObject()).Elem())
	part(obj, "Status").Set(status)
	metadata(obj).ManagedFields = managedFields
}

func (s statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.reset(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func metadata(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// part returns a field of an object, or the zero Value.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

func hasField(obj runtime.Object, name string) bool { return part(obj, name).IsValid() }

// withoutMetadata returns a copy of an object with neither metadata nor status.
func withoutMetadata(obj runtime.Object) any {
	c := reflect.New(reflect.TypeOf(obj).Elem())
	c.Elem().Set(reflect.ValueOf(obj).Elem())
	for _, name := range []string{"TypeMeta", "ObjectMeta", "Status"} {
		if f := c.Elem().FieldByName(name); f.IsValid() {
			f.SetZero()
		}
	}
	return c.Interface()
}

// Package apistorage has the parts that the storages of packages scheme/resource and schema/apiservertest
// share.
package apistorage

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy has the methods of a strategy that are the same for all kinds.
type Strategy struct{}

func (Strategy) AllowCreateOnUpdate(context.Context) bool                  { return false }
func (Strategy) Canonicalize(runtime.Object)                               {}
func (Strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (Strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Status serves the status subresource of a kind.
type Status struct{ store *registry.Store }

var (
	_ rest.Patcher             = Status{}
	_ rest.ResetFieldsStrategy = Status{}
	_ rest.TableConvertor      = Status{}
)

// NewStatus returns the status subresource of the objects in a store.
func NewStatus(store *registry.Store, strategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}) Status {
	status := *store
	status.CreateStrategy, status.DeleteStrategy = nil, nil
	status.UpdateStrategy, status.ResetFieldsStrategy = strategy, strategy
	return Status{&status}
}

func (s Status) New() runtime.Object { return s.store.New() }

// Destroy leaves the store to the storage of the objects.
func (Status) Destroy() {}

func (s Status) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update never creates an object.
func (s Status) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, info, create, update, false, options)
}

func (s Status) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

func (s Status) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, obj, options)
}

// Field returns a field of an object, or the zero Value.
func Field(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// KeepStatus resets an object to the old one, except for its status and its managedFields.
func KeepStatus(obj, old runtime.Object) {
	meta := obj.(metav1.Object)
	managedFields := meta.GetManagedFields()
	status := reflect.New(Field(obj, "Status").Type()).Elem()
	status.Set(Field(obj, "Status"))
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(old.DeepCopyObject()).Elem())
	Field(obj, "Status").Set(status)
	meta.SetManagedFields(managedFields)
}

// Package apistorage has the parts that packages scheme/resource and schema/apiservertest share: both serve kinds that no
// server of upstream serves.
package apistorage

import (
	"context"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// AddScale adds the types of the subresource scale to a scheme.
func AddScale(s *runtime.Scheme) {
	for _, version := range []string{"v1", runtime.APIVersionInternal} {
		s.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: version}, &autoscalingv1.Scale{})
	}
}

// NewGroupVersion returns a version that a server serves, with the types of requests in a scheme. It lacks what decodes,
// converts and encodes objects.
func NewGroupVersion(s *server.GenericAPIServer, config *server.Config, root string, gv schema.GroupVersion, storage map[string]rest.Storage, types *runtime.Scheme) *endpoints.APIGroupVersion {
	return &endpoints.APIGroupVersion{
		Storage: storage, Root: root, GroupVersion: gv,
		OptionsExternalVersion: &schema.GroupVersion{Version: "v1"}, MetaGroupVersion: &metav1.SchemeGroupVersion,
		ParameterCodec: runtime.NewParameterCodec(types), Typer: types, Namer: runtime.Namer(meta.NewAccessor()),
		EquivalentResourceRegistry: s.EquivalentResourceRegistry, Authorizer: s.Authorizer, Admit: config.AdmissionControl,
		MinRequestTimeout:   time.Duration(config.MinRequestTimeout) * time.Second, // of watches
		MaxRequestBodyBytes: config.MaxRequestBodyBytes,
	}
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

package resource

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/crdkit/crdkit/internal/apistorage"
	"github.com/crdkit/crdkit/internal/coerce"
)

// store returns the storage of a version with its subresources, by their paths. It is made as that of a custom resource
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, getOrCreateServingInfoFor).
func (r *Resource) store(k kinds, options generic.RESTOptionsGetter, v *apiextensionsv1.CustomResourceDefinitionVersion) (map[string]rest.Storage, error) {
	names, gv := r.crd.Spec.Names, r.version(v.Name)
	_, validator, statusValidator, err := coerce.Validators(v)
	if err != nil {
		return nil, err
	}
	subresources := cmp.Or(v.Subresources, &apiextensionsv1.CustomResourceSubresources{})
	columns := v.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{age}
	}
	table, err := tableconvertor.New(columns)
	if err != nil {
		return nil, err
	}
	own := customresource.NewStrategy(k.Scheme, r.namespaced(), gv.WithKind(names.Kind), validator, statusValidator, r.kind.Structural[v.Name],
		(*apiextensions.CustomResourceSubresourceStatus)(subresources.Status), (*apiextensions.CustomResourceSubresourceScale)(subresources.Scale), v.SelectableFields)
	storages, err := customresource.NewStorage(gv.WithResource(names.Plural).GroupResource(), gv.WithResource(names.Singular).GroupResource(),
		gv.WithKind(names.Kind), gv.WithKind(names.ListKind), own,
		stored{options, k, r.version(r.definition.StorageVersion()), gv}, names.Categories, table, r.replicas())
	if err != nil {
		return nil, err
	}
	store := storages.CustomResource.Store
	store.StorageVersioner = r.version(r.definition.StorageVersion())
	objects := strategy{own, r}
	store.CreateStrategy, store.UpdateStrategy = objects, objects
	all := map[string]rest.Storage{names.Plural: objectREST{storages.CustomResource, names.ShortNames}}
	if storages.Status != nil {
		all[names.Plural+"/status"] = apistorage.NewStatus(store, statusStrategy{strategy{customresource.NewStatusStrategy(own), r}})
	}
	if storages.Scale != nil {
		table, err := tableconvertor.New([]apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Desired", Type: "integer", Description: "Number of desired replicas", JSONPath: ".spec.replicas"},
			{Name: "Available", Type: "integer", Description: "Number of actual replicas", JSONPath: ".status.replicas"},
			age,
		})
		if err != nil {
			return nil, err
		}
		all[names.Plural+"/scale"] = scaleREST{storages.Scale, table}
	}
	return all, nil
}

// age is the column of a version without columns (apiextensions-apiserver/pkg/apiserver/helpers.go).
var age = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp",
}

func (r *Resource) namespaced() bool { return r.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// selectable returns the fields of a version for field selectors.
func (r *Resource) selectable(version string) []string {
	fields := []string{"metadata.name"}
	if r.namespaced() {
		fields = append(fields, "metadata.namespace")
	}
	for _, v := range r.crd.Spec.Versions {
		for _, f := range v.SelectableFields {
			if v.Name == version {
				fields = append(fields, strings.TrimPrefix(f.JSONPath, "."))
			}
		}
	}
	return fields
}

// replicas returns where the versions have the replicas of their scale.
func (r *Resource) replicas() managedfields.ResourcePathMappings {
	paths := managedfields.ResourcePathMappings{}
	for _, v := range r.crd.Spec.Versions {
		paths[r.version(v.Name).String()] = nil
		if v.Subresources != nil && v.Subresources.Scale != nil {
			var path fieldpath.Path
			for name := range strings.SplitSeq(strings.TrimPrefix(v.Subresources.Scale.SpecReplicasPath, "."), ".") {
				path = append(path, fieldpath.PathElement{FieldName: &name})
			}
			paths[r.version(v.Name).String()] = path
		}
	}
	return paths
}

// customStrategy is that of custom resources (apiextensions-apiserver/pkg/registry/customresource).
type customStrategy interface {
	rest.RESTCreateUpdateStrategy
	rest.ResetFieldsStrategy
}

// strategy adds the functions of Validate to that of custom resources.
type strategy struct {
	customStrategy
	resource *Resource
}

func (s strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	if errs := s.customStrategy.Validate(ctx, obj); len(errs) > 0 {
		return errs
	}
	return s.resource.validate(ctx, obj, nil)
}

func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if errs := s.customStrategy.ValidateUpdate(ctx, obj, old); len(errs) > 0 {
		return errs
	}
	return s.resource.validate(ctx, obj, old)
}

// statusStrategy resets the same fields in all versions (customresource_handler.go, getStatusResetFields).
type statusStrategy struct{ strategy }

func (s statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, v := range s.resource.crd.Spec.Versions {
		if v.Served && v.Subresources != nil && v.Subresources.Status != nil {
			gv := fieldpath.APIVersion(s.resource.version(v.Name).String())
			reset[gv] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
		}
	}
	return reset
}

// objectREST serves objects.
type objectREST struct {
	*customresource.REST
	shortNames []string
}

var (
	_ rest.StandardStorage    = objectREST{}
	_ rest.ShortNamesProvider = objectREST{}
	_ rest.CategoriesProvider = objectREST{}
)

func (o objectREST) ShortNames() []string { return o.shortNames }

// scaleREST serves the subresource scale.
type scaleREST struct {
	*customresource.ScaleREST
	rest.TableConvertor
}

var (
	_ rest.Patcher                  = scaleREST{}
	_ rest.GroupVersionKindProvider = scaleREST{}
)

// Destroy leaves the store to the storage of the objects.
func (scaleREST) Destroy() {}

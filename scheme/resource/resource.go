package resource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/crdkit/crdkit/internal/apistorage"
	"github.com/crdkit/crdkit/internal/gvk"
)

// Object is a pointer to a Go type with TypeMeta and ObjectMeta.
type Object interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// Option configures a resource.
type Option func(*Resource)

// ClusterScoped makes the resource cluster-scoped. By default, a resource is namespaced.
func ClusterScoped() Option { return func(r *Resource) { r.strategy.namespaced = false } }

// ShortNames sets short names of the resource for kubectl, such as pz.
func ShortNames(names ...string) Option { return func(r *Resource) { r.shortNames = names } }

// Categories sets the categories of the resource for kubectl. For example, kubectl get all lists
// the resources in the category all.
func Categories(names ...string) Option { return func(r *Resource) { r.categories = names } }

// Columns sets the columns of kubectl get between the columns Name and Age. The function cells
// returns the cells of an object, one for each column. T must be the type argument of [New].
func Columns[T Object](cells func(obj T) []any, columns ...metav1.TableColumnDefinition) Option {
	return func(r *Resource) {
		r.table.columns = columns
		r.table.cells = func(obj runtime.Object) ([]any, error) {
			typed, ok := obj.(T)
			if !ok {
				return nil, fmt.Errorf("resource: table of %s: got a %T, expected a %s", r.name, obj, reflect.TypeFor[T]())
			}
			return cells(typed), nil
		}
	}
}

// Fields sets a function that returns the fields for field selectors. The fields metadata.name
// and metadata.namespace always exist. T must be the type argument of [New]. Also declare the
// fields of each served version with scheme.FieldLabels.
func Fields[T Object](of func(obj T) fields.Set) Option {
	return func(r *Resource) {
		r.fields = func(obj runtime.Object) fields.Set { return of(obj.(T)) }
	}
}

// Validate sets the function that validates objects on creation and update. T is the Go type of
// a served version, so that errors have the fields of the object that the user wrote. Set a
// function for each served version. Metadata is validated separately.
func Validate[T Object](f func(ctx context.Context, obj T) field.ErrorList) Option {
	return func(r *Resource) {
		r.strategy.AddValidationFunc(*new(T), func(ctx context.Context, _ operation.Operation, obj, _ any) field.ErrorList {
			return f(ctx, obj.(T))
		})
	}
}

// Resource is the storage of one kind in all its versions.
type Resource struct {
	name       schema.GroupResource
	kind       string
	versions   []schema.GroupVersion
	shortNames []string
	categories []string
	fields     func(obj runtime.Object) fields.Set
	table      tableOf
	strategy   strategy
	newObject  func() runtime.Object
	newList    func() runtime.Object
}

// New returns the resource of a kind. The name is the plural, such as pizzas. If T has a field
// Status, the resource has the status subresource.
//
// The server holds the objects in T, and converts every served version from and to T. T is the Go
// type of the internal version of the kind ([runtime.APIVersionInternal]). Without an internal
// version, T is the Go type of the hub, which is a served version. New then registers T and its
// list as the internal version, too, because k8s.io/apiserver requires one.
//
// New adds the functions of [Validate] to the scheme. It returns an error if the scheme lacks T, its
// list, or a conversion between T and a served version of the kind. It also returns an error if
// the kind has no served version, or an internal version of another type.
func New[T Object](s *runtime.Scheme, name string, opts ...Option) (*Resource, error) {
	t := reflect.TypeFor[T]()
	kind, err := gvk.Of(s, t)
	if err != nil {
		return nil, fmt.Errorf("resource: %s: %w", name, err)
	}
	list, err := s.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("resource: %s: %w", name, err)
	}
	r := &Resource{
		name:      schema.GroupResource{Group: kind.Group, Resource: name},
		kind:      kind.Kind,
		newObject: func() runtime.Object { return reflect.New(t.Elem()).Interface().(runtime.Object) },
		newList:   func() runtime.Object { return reflect.New(reflect.TypeOf(list).Elem()).Interface().(runtime.Object) },
	}
	for _, gv := range s.PrioritizedVersionsForGroup(kind.Group) {
		served, ok := s.AllKnownTypes()[gv.WithKind(kind.Kind)]
		if !ok {
			continue
		}
		r.versions = append(r.versions, gv)
		if hub := t.Elem(); served != hub && (!gvk.Converts(s, served, hub) || !gvk.Converts(s, hub, served)) {
			return nil, fmt.Errorf("resource: %s: the scheme has no conversion between %s and %s", name, served, hub)
		}
	}
	if len(r.versions) == 0 {
		return nil, fmt.Errorf("resource: %s: the scheme has no served version of %s", name, kind.GroupKind())
	}
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	if has, ok := s.AllKnownTypes()[internal.WithKind(kind.Kind)]; ok && has != t.Elem() {
		return nil, fmt.Errorf("resource: %s: the type is %s, but the internal version of %s is %s", name, t.Elem(), kind.Kind, has)
	}
	s.AddKnownTypeWithName(internal.WithKind(kind.Kind), r.newObject())
	s.AddKnownTypeWithName(internal.WithKind(kind.Kind+"List"), r.newList())
	r.strategy = newStrategy(s)
	if apistorage.Field(r.newObject(), "Status").IsValid() {
		r.strategy.versions = r.versions
	}
	for _, opt := range opts {
		opt(r)
	}
	return r, nil
}

// store returns the storage of the objects and of their status. If the kind has no status, the
// second result is nil.
func (r *Resource) store(options generic.RESTOptionsGetter) (rest.Storage, rest.Storage, error) {
	write := r.strategy
	attributes := func(obj runtime.Object) (labels.Set, fields.Set, error) {
		accessor, ok := obj.(Object)
		if !ok {
			return nil, nil, fmt.Errorf("resource: %s: a %T has no metadata", r.name, obj)
		}
		m := metadata(accessor)
		set := generic.ObjectMetaFieldsSet(m, write.namespaced)
		if r.fields != nil {
			set = generic.MergeFieldsSets(set, r.fields(obj))
		}
		return m.Labels, set, nil
	}
	store := &registry.Store{
		NewFunc:                   r.newObject,
		NewListFunc:               r.newList,
		DefaultQualifiedResource:  r.name,
		SingularQualifiedResource: schema.GroupResource{Group: r.name.Group, Resource: strings.ToLower(r.kind)},
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes}
		},
		CreateStrategy: write, UpdateStrategy: write, DeleteStrategy: write, ResetFieldsStrategy: write,
		TableConvertor: r.table,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes}); err != nil {
		return nil, nil, fmt.Errorf("resource: %s: %w", r.name, err)
	}
	main := objectREST{store, r}
	if write.versions == nil {
		return main, nil, nil
	}
	return main, apistorage.NewStatus(store, statusStrategy{write}), nil
}

// objectREST serves the objects.
type objectREST struct {
	*registry.Store
	resource *Resource
}

var (
	_ rest.StandardStorage    = objectREST{}
	_ rest.ShortNamesProvider = objectREST{}
	_ rest.CategoriesProvider = objectREST{}
)

func (r objectREST) ShortNames() []string { return r.resource.shortNames }
func (r objectREST) Categories() []string { return r.resource.categories }

var errNoResources = errors.New("resource: no resources to install")

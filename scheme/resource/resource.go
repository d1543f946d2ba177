package resource

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
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
		r.expect("Columns", reflect.TypeFor[T](), r.goType)
		r.table.columns = columns
		r.table.cells = func(obj runtime.Object) ([]any, error) {
			typed, err := unwrap[T](obj)
			if err != nil {
				return nil, fmt.Errorf("resource: table of %s: %w", r.name, err)
			}
			return cells(typed), nil
		}
	}
}

// Fields sets a function that returns the fields for field selectors, beside metadata.name and
// metadata.namespace. T must be the type argument of [New]. Also declare the fields of each served
// version with scheme.FieldLabels.
func Fields[T Object](of func(obj T) fields.Set) Option {
	return func(r *Resource) {
		r.expect("Fields", reflect.TypeFor[T](), r.goType)
		r.fields = func(obj runtime.Object) (fields.Set, error) {
			typed, err := unwrap[T](obj)
			if err != nil {
				return nil, fmt.Errorf("resource: fields of %s: %w", r.name, err)
			}
			return of(typed), nil
		}
	}
}

// Validate sets the function that validates objects on creation, when old is nil, on update, and on
// updates of the status. T is the Go type of a served version, so that errors have the fields of
// the object that the user wrote. Set a function for each served version, or for none. The
// functions must not change the objects. Metadata is validated separately.
func Validate[T Object](f func(ctx context.Context, obj, old T) field.ErrorList) Option {
	return func(r *Resource) {
		r.expect("Validate", reflect.TypeFor[T](), r.served...)
		r.validated = append(r.validated, reflect.TypeFor[T]())
		r.strategy.AddValidationFunc(*new(T), func(ctx context.Context, _ operation.Operation, obj, old any) field.ErrorList {
			before, _ := old.(T) // nil on creation
			return f(ctx, obj.(T), before)
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
	fields     func(obj runtime.Object) (fields.Set, error)
	table      tableOf
	strategy   strategy
	newObject  func() runtime.Object
	newList    func() runtime.Object
	goType     reflect.Type   // T of New
	served     []reflect.Type // the types of the versions, as pointers
	validated  []reflect.Type // those with a function of Validate
	errs       []error        // mistakes in the options
}

// expect adds an error unless the type argument of an option is one of the expected types.
func (r *Resource) expect(option string, got reflect.Type, expected ...reflect.Type) {
	if !slices.Contains(expected, got) {
		r.errs = append(r.errs, fmt.Errorf("resource: %s: the type argument of %s is %s, expected one of %v", r.name.Resource, option, got, expected))
	}
}

// expectValidation adds an error for each served version without validation, if another version has
// a function of Validate, so that no user can write an object that one version refuses in another
// one. A generated function, which is in the scheme, counts too.
func (r *Resource) expectValidation(s *runtime.Scheme) {
	for i, t := range r.served {
		if len(r.validated) > 0 && !s.HasValidationFunc(reflect.Zero(t).Interface().(runtime.Object)) {
			r.errs = append(r.errs, fmt.Errorf("resource: %s: version %s of %s has no Validate[%s], but %s has one: expected a function for each served version or for none",
				r.name.Resource, r.versions[i].Version, r.kind, t, r.validated[0]))
		}
	}
}

// New returns the resource of a kind. The name is the plural, such as pizzas. If T has a field
// Status, the resource has the status subresource.
//
// The server converts every object to T, even between two other versions, so fields that T does not
// have are lost. T must be the Go type of the internal version of the kind
// ([runtime.APIVersionInternal]) or, if the API has none, of the served version that is the hub of
// the conversions. In the latter case, New adds an internal version to the scheme.
//
// New also adds the functions of [Validate] to the scheme. Call New after you have added the
// conversions to the scheme, and before the server runs. New returns an error if
//
//   - the scheme lacks T, its list, or a served version of the kind,
//   - T is of a served version, and the scheme has an internal version of the kind,
//   - T is of a served version, and another version lacks a conversion or a list with ListMeta and
//     Items,
//   - one served version has a function of Validate, and another one has none, or
//   - an option has a type argument of another kind or version.
func New[T Object](s *runtime.Scheme, name string, opts ...Option) (*Resource, error) {
	r, err := newResource[T](s, name)
	if err != nil {
		return nil, fmt.Errorf("resource: %s: %w", name, err)
	}
	for _, opt := range opts {
		opt(r)
	}
	r.expectValidation(s)
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	return r, nil
}

func newResource[T Object](s *runtime.Scheme, name string) (*Resource, error) {
	kind, err := gvk.Of(s, reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	list, err := s.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	r := &Resource{
		name:      schema.GroupResource{Group: kind.Group, Resource: name},
		kind:      kind.Kind,
		goType:    reflect.TypeFor[T](),
		newObject: func() runtime.Object { return zero[T]() },
		newList:   func() runtime.Object { return reflect.New(reflect.TypeOf(list).Elem()).Interface().(runtime.Object) },
	}
	known := s.AllKnownTypes()
	for _, gv := range s.PrioritizedVersionsForGroup(kind.Group) {
		if t, ok := known[gv.WithKind(kind.Kind)]; ok {
			r.versions = append(r.versions, gv)
			r.served = append(r.served, reflect.PointerTo(t))
		}
	}
	if len(r.versions) == 0 {
		return nil, fmt.Errorf("the scheme has no served version of %s", kind.GroupKind())
	}
	if kind.Version != runtime.APIVersionInternal {
		if err := addHub[T](s, kind, r.versions); err != nil {
			return nil, err
		}
		r.newObject = func() runtime.Object { return &hub[T]{Object: zero[T]()} }
		r.newList = func() runtime.Object { return &hubList[T]{} }
	}
	r.strategy = newStrategy(s)
	if apistorage.Field(r.newObject(), "Status").IsValid() {
		r.strategy.versions = r.versions
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
		if r.fields == nil {
			return m.Labels, set, nil
		}
		own, err := r.fields(obj)
		return m.Labels, generic.MergeFieldsSets(set, own), err
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

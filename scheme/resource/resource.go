package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/coerce"
	"github.com/crdkit/crdkit/internal/gvk"
	crdschema "github.com/crdkit/crdkit/schema"
)

// Object is a pointer to a Go type with TypeMeta and ObjectMeta.
type Object interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// Option configures a resource.
type Option func(*Resource)

// Validate sets the function that validates objects on creation, when old is nil, on update, and on updates of the status and
// the scale. T is the Go type of a served version, so that errors have the fields of the object that the user wrote. Set a
// function for each served version, or for none. The functions are called for objects that the definition accepts, and get
// copies of them.
//
// As by its schema, an object is only validated in the version of the request. If the function of another version refuses what
// this one accepts, the object is stored, and later updates in that version fail, unless they repair it or the function compares
// with old.
func Validate[T Object](f func(ctx context.Context, obj, old T) field.ErrorList) Option {
	return func(r *Resource) {
		t := reflect.TypeFor[T]()
		if !slices.Contains(r.served, t) {
			r.errs = append(r.errs, fmt.Errorf("the type argument of Validate is %s, expected one of %v", t, r.served))
		}
		if r.validated[t] != nil {
			r.errs = append(r.errs, fmt.Errorf("Validate is given twice for %s", t))
		}
		r.validated[t] = func() {
			r.types.AddValidationFunc(*new(T), func(ctx context.Context, _ operation.Operation, obj, old any) field.ErrorList {
				before, _ := old.(T) // nil on creation
				return f(ctx, obj.(T), before)
			})
		}
	}
}

// Resource is the storage of one kind in all its versions.
type Resource struct {
	definition *crdschema.Definition
	crd        *apiextensionsv1.CustomResourceDefinition // that of the definition
	kind       coerce.Kind
	types      *runtime.Scheme // the Go types of all versions, and their conversions
	hub        schema.GroupVersion
	served     []reflect.Type          // the types of the served versions, as pointers
	validated  map[reflect.Type]func() // those with a function of Validate, and what adds it to types
	errs       []error                 // mistakes in the options
}

// New returns the resource that a definition describes: its names, scope and categories, and for each served version the
// schema with its defaults and rules, the columns, the selectable fields, and the subresources status and scale. Nothing of
// this is said again in Go.
//
// The scheme has the Go types of all versions, and their conversions. Between two versions, the server converts objects to T
// and from there to the other version, so fields that the Go types do not have are lost, and an object with a value that they
// cannot hold, such as 1.5 for an int32, cannot be read in other versions. T is the Go type of the internal
// version ([runtime.APIVersionInternal]) or of the version that is the hub of the conversions. Objects are stored in the
// storage version of the definition. A conversion webhook of the definition is not called.
//
// New adds the functions of [Validate] to the scheme. It returns an error if
//
//   - T is of another kind than the definition,
//   - the scheme lacks a version of the definition, or its conversion from or to T,
//   - the definition has preserveUnknownFields,
//   - one served version has a function of Validate, or another validating function in the scheme, and another one has none, or
//   - an option has a type argument of another kind, or is given twice for a type.
func New[T Object](types *runtime.Scheme, definition *crdschema.Definition, opts ...Option) (*Resource, error) {
	crd := definition.CustomResourceDefinition()
	r := &Resource{
		definition: definition, crd: crd, types: types, validated: map[reflect.Type]func(){},
		kind: coerce.Kind{GroupKind: definition.GroupKind(), Structural: map[string]*structuralschema.Structural{}},
	}
	hub, err := gvk.Of(types, reflect.TypeFor[T]())
	if err != nil || hub.GroupKind() != r.kind.GroupKind {
		return nil, errors.Join(fmt.Errorf("resource: %s: the type argument of New is %s, expected a type of %s", crd.Name, reflect.TypeFor[T](), r.kind.GroupKind), err)
	}
	r.hub = hub.GroupVersion()
	if crd.Spec.PreserveUnknownFields {
		r.errs = append(r.errs, errors.New("spec.preserveUnknownFields: Invalid value: true: expected a structural schema"))
	}
	for _, version := range definition.Versions() {
		r.kind.Structural[version] = definition.Version(version).Structural()
		obj, err := types.New(r.kind.GroupKind.WithVersion(version))
		if err != nil {
			r.errs = append(r.errs, fmt.Errorf("the scheme lacks version %s of %s", version, r.kind.GroupKind))
			continue
		}
		if definition.Version(version).Served() {
			r.served = append(r.served, reflect.TypeOf(obj))
		}
		object, hub := reflect.TypeOf(obj).Elem(), reflect.TypeFor[T]().Elem()
		if object != hub && (!gvk.Converts(types, object, hub) || !gvk.Converts(types, hub, object)) {
			r.errs = append(r.errs, fmt.Errorf("the scheme has no conversion between %s and %s", object, hub))
		}
	}
	for _, opt := range opts {
		opt(r)
	}
	r.expectValidation()
	for i, err := range r.errs {
		r.errs[i] = fmt.Errorf("resource: %s: %w", crd.Name, err)
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	for _, add := range r.validated {
		add()
	}
	return r, nil
}

// expectValidation adds an error for each served version without a validating function, if another version has one. Otherwise,
// a user could write what one version refuses in another one. A function that is in the scheme, such as a generated one, counts too.
func (r *Resource) expectValidation() {
	var with, without []reflect.Type
	for _, t := range r.served {
		if r.validated[t] != nil || r.types.HasValidationFunc(reflect.Zero(t).Interface().(runtime.Object)) {
			with = append(with, t)
		} else {
			without = append(without, t)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		r.errs = append(r.errs, fmt.Errorf("%v have a validating function, and %v have none, expected a function of Validate for each served version or for none", with, without))
	}
}

// version returns a version of the kind's group.
func (r *Resource) version(name string) schema.GroupVersion {
	return schema.GroupVersion{Group: r.kind.GroupKind.Group, Version: name}
}

// typed returns an object as its Go type.
func (r *Resource) typed(u *unstructured.Unstructured) (runtime.Object, error) {
	obj, err := r.types.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	if err := codec.Decode(text, obj); err != nil {
		return nil, fmt.Errorf("%s %s is not decoded as %T: %w", r.kind.GroupKind, u.GetName(), obj, err)
	}
	return obj, nil
}

// convert returns an object in a version: itself, or a new one, of whose metadata only labels and annotations may differ. The
// internal version is that of the object, as for custom resources on a server.
func (r *Resource) convert(u *unstructured.Unstructured, version string, prune bool) (*unstructured.Unstructured, error) {
	to := r.version(version)
	if to == u.GroupVersionKind().GroupVersion() || version == runtime.APIVersionInternal {
		return u, nil
	}
	obj, err := r.typed(u)
	if err != nil {
		return nil, err
	}
	for _, gv := range []schema.GroupVersion{r.hub, to} {
		next, err := r.types.New(gv.WithKind(r.kind.GroupKind.Kind))
		if err != nil {
			return nil, err
		}
		if reflect.TypeOf(next) == reflect.TypeOf(obj) {
			continue
		}
		if err := r.types.Convert(obj, next, nil); err != nil {
			return nil, err
		}
		obj = next
	}
	obj.GetObjectKind().SetGroupVersionKind(to.WithKind(r.kind.GroupKind.Kind))
	// In JSON, a number is an integer or not, whatever its Go type is.
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if out.Object["metadata"] == nil { // no function has copied it
		out.Object["metadata"] = map[string]any{}
	}
	if err := coerce.RestoreMetadata(u, out); err != nil {
		return nil, fmt.Errorf("the conversion of %s %s to %s returned invalid metadata: %w", r.kind.GroupKind, u.GetName(), to, err)
	}
	if prune {
		_, err = r.kind.Coerce(out, false, false)
	}
	return out, err
}

// validate calls the function for the version of an object, if there is one.
func (r *Resource) validate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	sample, err := r.types.New(obj.GetObjectKind().GroupVersionKind())
	if err == nil && !r.types.HasValidationFunc(sample) {
		return nil
	}
	after, err := r.typed(obj.(*unstructured.Unstructured))
	var before runtime.Object
	if err == nil && old != nil {
		before, err = r.typed(old.(*unstructured.Unstructured))
	}
	switch {
	case err != nil:
		return field.ErrorList{field.InternalError(nil, err)}
	case old == nil:
		return r.types.Validate(ctx, nil, after)
	}
	return r.types.ValidateUpdate(ctx, nil, after, before)
}

package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
)

// AddToScheme registers the conversions of the registry in a [runtime.Scheme], which is usually
// the scheme of the registry. All decoders with that scheme then use these conversions,
// including the codecs of an aggregated API server. Add all conversions to the registry before
// you call AddToScheme.
//
// Each version of a kind converts to each other version, including the hub, which may be the
// internal version ([runtime.APIVersionInternal]). If the scheme has the lists of both
// versions, a list converts with its items. The guarantees of package conversion apply:
// metadata is copied, functions may only change labels and annotations, and an error contains
// the name of the object.
//
// As with the functions of conversion-gen, a result may share memory with its source (see
// [runtime.Scheme.UnsafeConvertToVersion]). Conversions with [Lossless] or [AddFields] encode
// the object as JSON; other conversions do not.
//
// AddToScheme returns an error if the scheme lacks a version of a kind in the registry, or has
// another Go type for the version. Versions that were added with [AddUnstructuredSpoke] are
// skipped.
func (r *Registry) AddToScheme(s *runtime.Scheme) error {
	known := s.AllKnownTypes()
	var errs []error
	for _, k := range r.kinds {
		for _, rt := range k.routes {
			to := rt.to.WithKind(rt.from.Kind)
			if rt.from == to || !rt.typed(0) || !rt.typed(len(rt.steps)-1) {
				continue
			}
			first, last := rt.steps[0].in, rt.steps[len(rt.steps)-1].out
			if err := errors.Join(r.hasType(known, rt.from, first), r.hasType(known, to, last)); err != nil {
				errs = append(errs, err)
				continue
			}
			errs = append(errs, addConversion(s, known[rt.from], known[to], func(in, out any) error {
				return r.convertTyped(context.Background(), rt, in.(runtime.Object), out.(runtime.Object))
			}))
		}
	}
	return errors.Join(errs...)
}

// hasType returns an error unless the Go type of a kind is the one that a conversion uses.
func (r *Registry) hasType(known map[schema.GroupVersionKind]reflect.Type, kind schema.GroupVersionKind, as representation) error {
	t, ok := known[kind]
	if !ok {
		return fmt.Errorf("conversion: the scheme does not have %s, which the registry converts", kind)
	}
	if r.types[t] != as {
		return fmt.Errorf("conversion: the scheme has %s as %v, which is not the type that the registry converts", kind, t)
	}
	return nil
}

// addConversion registers a conversion between two types, and one between their lists.
func addConversion(s *runtime.Scheme, from, to reflect.Type, convert func(in, out any) error) error {
	zero := func(t reflect.Type) any { return reflect.Zero(reflect.PointerTo(t)).Interface() }
	err := s.AddConversionFunc(zero(from), zero(to), func(in, out any, _ apiconversion.Scope) error { return convert(in, out) })
	fromList, toList := listOf(s, from), listOf(s, to)
	if err != nil || fromList == nil || toList == nil {
		return err
	}
	return s.AddConversionFunc(zero(fromList), zero(toList), func(in, out any, _ apiconversion.Scope) error {
		return convertList(reflect.ValueOf(in).Elem(), reflect.ValueOf(out).Elem(), convert)
	})
}

// listOf returns the type of the list of a type, or nil.
func listOf(s *runtime.Scheme, t reflect.Type) reflect.Type {
	kind, err := gvk.Of(s, reflect.PointerTo(t))
	if err != nil {
		return nil
	}
	list := s.AllKnownTypes()[kind.GroupVersion().WithKind(kind.Kind+"List")]
	if list == nil || list.Kind() != reflect.Struct {
		return nil
	}
	items, ok := list.FieldByName("Items")
	if _, hasMeta := list.FieldByName("ListMeta"); !ok || !hasMeta || items.Type != reflect.SliceOf(t) {
		return nil
	}
	return list
}

func convertList(in, out reflect.Value, convert func(in, out any) error) error {
	out.FieldByName("ListMeta").Set(in.FieldByName("ListMeta"))
	from, to := in.FieldByName("Items"), out.FieldByName("Items")
	if from.IsNil() {
		to.SetZero()
		return nil
	}
	to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	for i := range from.Len() {
		if err := convert(from.Index(i).Addr().Interface(), to.Index(i).Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// typed reports whether a step converts between Go types.
func (rt *route) typed(step int) bool {
	_, in := rt.steps[step].in.(*typed)
	_, out := rt.steps[step].out.(*typed)
	return in && out
}

// convertTyped converts an object between the Go types at both ends of a route. The apiVersion
// and kind of out are not changed.
func (r *Registry) convertTyped(ctx context.Context, rt *route, in, out runtime.Object) (err error) {
	inMeta, err := objectMeta(in)
	if err != nil {
		return err
	}
	name, from := gvk.Name(rt.from.Kind, inMeta.Namespace, inMeta.Name), rt.from.GroupVersion().String()
	defer func() {
		if v := recover(); v != nil {
			err = panicked(ctx, v, name, from, rt.to)
		}
	}()
	outType, err := typeMeta(out)
	if err != nil {
		return err
	}
	kept := *outType
	source := shallowCopy(in)
	sourceType, _ := typeMeta(source)
	*sourceType = typeMetaOf(rt.from)
	var result runtime.Object
	for i, s := range rt.steps {
		if s.convertPayload != nil || !rt.typed(i) {
			result, err = r.convertAsJSON(ctx, rt, source, out)
			if err != nil {
				return err // it names the object
			}
			break
		}
	}
	if result == nil {
		if result, err = r.convertDirectly(ctx, rt, source); err != nil {
			return fmt.Errorf("cannot convert %s from %s to %s: %w", name, from, rt.to, err)
		}
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(result).Elem())
	*outType = kept
	outMeta, _ := objectMeta(out)
	outMeta.ManagedFields = inMeta.ManagedFields
	return nil
}

// convertDirectly converts an object with functions between Go types. It may modify source.
func (r *Registry) convertDirectly(ctx context.Context, rt *route, source runtime.Object) (runtime.Object, error) {
	c := r.newConverter()
	meta, _ := objectMeta(source)
	meta.ManagedFields = nil
	c.object = &object{meta: *meta}
	c.before = snapshotMetadata(meta)
	_, result, _, err := c.walk(ctx, rt.steps, payload{labels: meta.Labels, annotations: meta.Annotations}, source)
	if err == nil {
		r.release(c)
	}
	return result, err
}

// convertAsJSON converts an object along a route with steps that need JSON.
func (r *Registry) convertAsJSON(ctx context.Context, rt *route, source, out runtime.Object) (runtime.Object, error) {
	text, err := json.Marshal(source)
	if err != nil {
		return nil, err
	}
	if text, err = r.Convert(ctx, text, rt.to); err != nil {
		return nil, err
	}
	result := reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object)
	return result, codec.Decode(text, result)
}

func shallowCopy(obj runtime.Object) runtime.Object {
	v := reflect.New(reflect.TypeOf(obj).Elem())
	v.Elem().Set(reflect.ValueOf(obj).Elem())
	return v.Interface().(runtime.Object)
}

func typeMetaOf(kind schema.GroupVersionKind) metav1.TypeMeta {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: name}
}

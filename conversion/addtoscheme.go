package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
)

// AddToScheme registers the conversions of the registry in a [runtime.Scheme], usually its own, so
// that all decoders with that scheme use them, including the codecs of an aggregated API server.
// Add all conversions to the registry before you call AddToScheme.
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
// skipped. Functions of s itself, which [AddSchemeFunctions] added, are kept.
func (r *Registry) AddToScheme(s *runtime.Scheme) error {
	known := s.AllKnownTypes()
	var errs []error
	for _, k := range r.kinds {
		for _, rt := range k.routes {
			to := rt.to.WithKind(rt.from.Kind)
			if rt.from == to || !rt.steps[0].typed() || !rt.steps[len(rt.steps)-1].typed() {
				continue
			}
			first, last := rt.steps[0].in, rt.steps[len(rt.steps)-1].out
			if err := errors.Join(r.hasType(known, rt.from, first), r.hasType(known, to, last)); err != nil {
				errs = append(errs, err)
				continue
			}
			if s == r.scheme && len(rt.steps) == 1 && rt.steps[0].shares {
				// AddSchemeFunctions took the function from this scheme; a replacement would call
				// itself.
				errs = append(errs, gvk.AddListConversion(s, rt.from, to, func(in, out any, scope apiconversion.Scope) error { return scope.Convert(in, out) }))
				continue
			}
			convert := r.convertDirectly
			if slices.ContainsFunc(rt.steps, func(s *step) bool { return s.convertPayload != nil || !s.typed() }) {
				convert = r.convertAsJSON
			}
			errs = append(errs, gvk.AddConversion(s, rt.from, to, func(in, out any, _ apiconversion.Scope) error {
				return convertTyped(rt, in.(runtime.Object), out.(runtime.Object), convert)
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

// typed reports whether a step converts between Go types.
func (s *step) typed() bool {
	_, in := s.in.(*typed)
	_, out := s.out.(*typed)
	return in && out
}

// convertTyped converts an object between the Go types at both ends of a route. The apiVersion
// and kind of out are not changed. The function may modify the source, a shallow copy of in.
func convertTyped(rt *route, in, out runtime.Object, convert func(ctx context.Context, rt *route, source, out runtime.Object) (runtime.Object, error)) (err error) {
	ctx := context.Background()
	inMeta, err := objectMeta(in)
	if err != nil {
		return err
	}
	from := rt.from.GroupVersion().String()
	defer func() {
		if v := recover(); v != nil {
			err = panicked(ctx, v, rt.from.Kind, inMeta.Namespace, inMeta.Name, from, rt.to)
		}
	}()
	outType, err := typeMeta(out)
	if err != nil {
		return err
	}
	kept := *outType
	shallow := reflect.New(reflect.TypeOf(in).Elem()) // shares the memory of the fields
	shallow.Elem().Set(reflect.ValueOf(in).Elem())
	source := shallow.Interface().(runtime.Object)
	sourceType, _ := typeMeta(source)
	*sourceType = rt.steps[0].fromType
	result, err := convert(ctx, rt, source, out)
	if err != nil {
		return err
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(result).Elem())
	*outType = kept
	outMeta, _ := objectMeta(out)
	outMeta.ManagedFields = inMeta.ManagedFields
	return nil
}

// convertDirectly converts an object with functions between Go types.
func (r *Registry) convertDirectly(ctx context.Context, rt *route, source, _ runtime.Object) (runtime.Object, error) {
	c := r.newConverter()
	meta, _ := objectMeta(source)
	namespace, name := meta.Namespace, meta.Name // functions may change them
	meta.ManagedFields = nil
	c.object = &object{meta: *meta}
	c.before = snapshotMetadata(meta)
	_, result, _, err := c.walk(ctx, rt.steps, payload{Labels: meta.Labels, Annotations: meta.Annotations}, source)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s from %s to %s: %w", gvk.Name(rt.from.Kind, namespace, name), rt.from.GroupVersion(), rt.to, err)
	}
	r.release(c)
	return result, nil
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

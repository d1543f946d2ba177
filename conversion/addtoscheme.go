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
	for _, k := range r.graph {
		for _, rt := range k.routes {
			first, last := rt.steps[0], rt.steps[len(rt.steps)-1]
			if !first.typed() || !last.typed() {
				continue
			}
			if err := errors.Join(hasType(known, first.from, first.in), hasType(known, last.to, last.out)); err != nil {
				errs = append(errs, err)
				continue
			}
			if s == r.scheme && len(rt.steps) == 1 && first.shares {
				// AddSchemeFunctions took the function from this scheme; a replacement would call
				// itself.
				errs = append(errs, gvk.AddListConversion(s, rt.from, last.to, func(in, out any, scope apiconversion.Scope) error { return scope.Convert(in, out) }))
				continue
			}
			asJSON := slices.ContainsFunc(rt.steps, func(s *step) bool { return s.transform != nil || !s.typed() })
			errs = append(errs, gvk.AddConversion(s, rt.from, last.to, func(in, out any, _ apiconversion.Scope) error {
				return r.convertTyped(rt, in.(runtime.Object), out.(runtime.Object), asJSON)
			}))
		}
	}
	return errors.Join(errs...)
}

// hasType returns an error unless the Go type of a kind is the one that a conversion uses.
func hasType(known map[schema.GroupVersionKind]reflect.Type, kind schema.GroupVersionKind, form *codec.Form) error {
	t, ok := known[kind]
	if !ok {
		return fmt.Errorf("conversion: the scheme does not have %s, which the registry converts", kind)
	}
	if t != form.Type.Elem() {
		return fmt.Errorf("conversion: the scheme has %s as %v, which is not the type that the registry converts", kind, t)
	}
	return nil
}

// typed reports whether a step converts between Go types.
func (s *step) typed() bool { return s.in != nil && s.out != nil && !s.in.Map && !s.out.Map }

// convertTyped converts an object between the Go types at both ends of a route, as JSON if a step needs
// that. The apiVersion and kind of out are not changed.
func (r *Registry) convertTyped(rt *route, in, out runtime.Object, asJSON bool) (err error) {
	ctx := context.Background()
	inMeta, err := objectMeta(in)
	if err != nil {
		return err
	}
	c := r.newConverter()
	c.object = &object{apiVersion: rt.from.GroupVersion().String(), kind: rt.from.Kind, meta: *inMeta}
	defer c.recovered(ctx, rt.to, &err)
	outType, err := typeMeta(out)
	if err != nil {
		return err
	}
	kept := *outType
	shallow := reflect.New(reflect.TypeOf(in).Elem()) // shares the memory of the fields; the functions may modify it
	shallow.Elem().Set(reflect.ValueOf(in).Elem())
	source := shallow.Interface().(runtime.Object)
	sourceType, _ := typeMeta(source)
	*sourceType = rt.steps[0].fromType
	var result runtime.Object
	if asJSON {
		text, err := json.Marshal(source)
		if err == nil {
			text, err = r.Convert(ctx, text, rt.to)
		}
		if err != nil {
			return err
		}
		result = reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object)
		if err := codec.Decode(text, result); err != nil {
			return err
		}
	} else {
		meta, _ := objectMeta(source)
		meta.ManagedFields, c.object.meta.ManagedFields = nil, nil
		c.before = snapshotMetadata(meta)
		p := payload{Labels: meta.Labels, Annotations: meta.Annotations}
		if _, result, _, err = c.walk(ctx, rt.steps, p, source); err != nil {
			return c.failed(rt.to, err)
		}
	}
	r.release(c)
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(result).Elem())
	*outType = kept
	outMeta, _ := objectMeta(out)
	outMeta.ManagedFields = inMeta.ManagedFields
	return nil
}

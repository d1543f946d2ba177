package conversion

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/gvk"
)

// AddSchemeFunctions adds the conversion functions between the hub and every other version of the
// kind that RegisterConversions of conversion-gen, or [runtime.Scheme.AddConversionFunc],
// registered in the registry's scheme. The hub may be the internal version
// ([runtime.APIVersionInternal]) of an aggregated API server, which is never stored or encoded.
//
// The functions are called by [runtime.Scheme.Convert], without a context (Scope.Meta().Context).
// They may copy the metadata, and out may share memory with in. Otherwise, the rules of [AddSpoke]
// apply.
//
// AddSchemeFunctions adds the spokes without mistakes, and returns an error that joins all
// mistakes:
//
//   - The scheme does not know the hub, or knows no other version of the kind.
//   - The scheme lacks a function from or to a spoke.
//   - AddSpoke would return an error for the types.
func AddSchemeFunctions(r *Registry, hub schema.GroupVersionKind) error {
	known := r.scheme.AllKnownTypes()
	hubType, ok := known[hub]
	if !ok {
		return fmt.Errorf("conversion: %s is not registered in the scheme", hub)
	}
	var spokes []schema.GroupVersionKind
	for kind := range known {
		if kind.GroupKind() == hub.GroupKind() && kind.Version != hub.Version {
			spokes = append(spokes, kind)
		}
	}
	if len(spokes) == 0 {
		return fmt.Errorf("conversion: %s has no other version in the scheme", hub)
	}
	slices.SortFunc(spokes, func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Version}, []string{b.Version})
	})
	convert := func(_ context.Context, in, out runtime.Object) error { return r.scheme.Convert(in, out, nil) }
	var errs []error
	for _, spoke := range spokes {
		spokeType := known[spoke]
		_, spokeErr := r.kindOf(reflect.PointerTo(spokeType))
		_, hubErr := r.kindOf(reflect.PointerTo(hubType))
		if err := errors.Join(spokeErr, hubErr, registered(r.scheme, spokeType, hubType), registered(r.scheme, hubType, spokeType)); err != nil {
			errs = append(errs, err)
			continue
		}
		s, h := r.codecs.Form(reflect.PointerTo(spokeType)), r.codecs.Form(reflect.PointerTo(hubType))
		errs = append(errs, r.graph.add(
			&step{from: spoke, to: hub, in: s, out: h, function: convert, shares: true},
			&step{from: hub, to: spoke, in: h, out: s, function: convert, shares: true}))
	}
	return errors.Join(errs...)
}

// registered returns an error if the scheme has no function between two types.
func registered(s *runtime.Scheme, from, to reflect.Type) error {
	if !gvk.Converts(s, from, to) {
		return fmt.Errorf("conversion: the scheme has no function from %s to %s", from, to)
	}
	return nil
}

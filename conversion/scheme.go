package conversion

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddSchemeFunctions adds the conversions of a kind that are registered in the
// registry's scheme, as conversion-gen's RegisterConversions does it, or
// [runtime.Scheme.AddConversionFunc]: between the hub and every other version of
// the kind which the scheme knows. The hub may be the internal version
// ([runtime.APIVersionInternal]) of an aggregated API server, which is never
// stored and never encoded.
//
// Such functions copy the metadata, which is allowed; what else [AddSpoke] says
// about functions holds for them too. They are called as runtime.Scheme.Convert
// calls them, with a nil context for their scope.
//
// It is an error if the scheme does not know the hub, or no other version; if a
// function is missing; and what is an error of AddSpoke. All that applies is
// joined.
func AddSchemeFunctions(r *Registry, hub schema.GroupVersionKind) error {
	known := r.scheme.AllKnownTypes()
	hubType, ok := known[hub]
	if !ok {
		return fmt.Errorf("conversion: the scheme does not know %s", hub)
	}
	var spokes []schema.GroupVersionKind
	for gvk := range known {
		if gvk.GroupKind() == hub.GroupKind() && gvk.Version != hub.Version {
			spokes = append(spokes, gvk)
		}
	}
	if len(spokes) == 0 {
		return fmt.Errorf("conversion: the scheme knows no other version of %s", hub)
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
		if err := errors.Join(spokeErr, hubErr, r.registered(spokeType, hubType), r.registered(hubType, spokeType)); err != nil {
			errs = append(errs, err)
			continue
		}
		s, h := r.typed(reflect.PointerTo(spokeType)), r.typed(reflect.PointerTo(hubType))
		errs = append(errs, r.add(true,
			&step{from: spoke, to: hub, in: s, out: h, call: convert, shares: true},
			&step{from: hub, to: spoke, in: h, out: s, call: convert, shares: true}))
	}
	return errors.Join(errs...)
}

// registered returns an error if the scheme has no function between two types.
// There is no other way to find out than to try, with objects that are empty:
// what else the function makes of them does not matter.
func (r *Registry) registered(from, to reflect.Type) (err error) {
	defer func() { _ = recover() }()
	got := r.scheme.Convert(reflect.New(from).Interface(), reflect.New(to).Interface(), nil)
	// apimachinery/pkg/conversion.Converter.Convert
	if missing := fmt.Sprintf("converting (%s) to (%s): unknown conversion", from, to); got != nil && got.Error() == missing {
		return fmt.Errorf("conversion: the scheme has no function from %s to %s", from, to)
	}
	return nil
}

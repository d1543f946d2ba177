package apiserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is a pointer to one of our kinds.
type object interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// addSpoke registers the two conversions between a served version of a kind, S, and the
// hub, H, where the codecs of k8s.io/apiserver look for them: in the scheme, for the kind
// and for its list. The functions are such as conversion.AddSpoke takes; the metadata, which
// they leave alone, is copied here.
//
// conversion.AddSchemeFunctions finds them there again.
func addSpoke[S, H object](s *runtime.Scheme, toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error) error {
	spoke, spokeErr := newList[S](s)
	hub, hubErr := newList[H](s)
	if err := errors.Join(spokeErr, hubErr, addFunction(s, toHub), addFunction(s, fromHub)); err != nil {
		return err
	}
	convert := func(in, out any, _ apiconversion.Scope) error { return convertList(s, in, out) }
	return errors.Join(s.AddConversionFunc(spoke, hub, convert), s.AddConversionFunc(hub, spoke, convert))
}

func addFunction[A, B object](s *runtime.Scheme, convert func(ctx context.Context, in A, out B) error) error {
	return s.AddConversionFunc(*new(A), *new(B), func(a, b any, _ apiconversion.Scope) error {
		in, out := a.(A), b.(B)
		// Memory may be shared, as with the functions that conversion-gen writes:
		// runtime.Scheme.ConvertToVersion copies first.
		*metadata(out) = *metadata(in)
		return convert(context.Background(), in, out)
	})
}

// metadata returns the ObjectMeta that all our kinds embed.
func metadata(o object) *metav1.ObjectMeta { return o.GetObjectMeta().(*metav1.ObjectMeta) }

// newList returns an empty list of a kind.
func newList[T object](s *runtime.Scheme) (runtime.Object, error) {
	kind := reflect.TypeFor[T]().Elem()
	kinds, _, err := s.ObjectKinds(reflect.New(kind).Interface().(runtime.Object))
	if err != nil {
		return nil, err
	}
	if len(kinds) != 1 {
		return nil, fmt.Errorf("apiserver: %s is %d kinds, %v, not one", kind, len(kinds), kinds)
	}
	return s.New(schema.GroupVersionKind{Group: kinds[0].Group, Version: kinds[0].Version, Kind: kinds[0].Kind + "List"})
}

// convertList converts a list with the functions of its items.
func convertList(s *runtime.Scheme, in, out any) error {
	from, to := reflect.ValueOf(in).Elem(), reflect.ValueOf(out).Elem()
	to.FieldByName("ListMeta").Set(from.FieldByName("ListMeta"))
	items := from.FieldByName("Items")
	converted := reflect.Zero(to.FieldByName("Items").Type())
	if !items.IsNil() {
		converted = reflect.MakeSlice(converted.Type(), items.Len(), items.Len())
	}
	for i := range items.Len() {
		if err := s.Convert(items.Index(i).Addr().Interface(), converted.Index(i).Addr().Interface(), nil); err != nil {
			return err
		}
	}
	to.FieldByName("Items").Set(converted)
	return nil
}

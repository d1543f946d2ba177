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
	spoke, spokeErr := kindOf[S](s)
	hub, hubErr := kindOf[H](s)
	if err := errors.Join(spokeErr, hubErr); err != nil {
		return err
	}
	spokes, spokesErr := newList(s, spoke)
	hubs, hubsErr := newList(s, hub)
	if err := errors.Join(spokesErr, hubsErr, addFunction(s, spoke, hub, toHub), addFunction(s, hub, spoke, fromHub)); err != nil {
		return err
	}
	convert := func(in, out any, _ apiconversion.Scope) error { return convertList(s, in, out) }
	return errors.Join(s.AddConversionFunc(spokes, hubs, convert), s.AddConversionFunc(hubs, spokes, convert))
}

// addFunction registers one conversion. Its errors name the object, as those of package
// conversion do.
func addFunction[A, B object](s *runtime.Scheme, from, to schema.GroupVersionKind, convert func(ctx context.Context, in A, out B) error) error {
	return s.AddConversionFunc(*new(A), *new(B), func(a, b any, _ apiconversion.Scope) error {
		in, out := a.(A), b.(B)
		// Memory may be shared, as with the functions that conversion-gen writes.
		// runtime.Scheme.ConvertToVersion copies first; the codecs do not, with their
		// runtime.UnsafeObjectConvertor (serializer/versioning/versioning.go). They drop
		// what they have decoded when it is converted, and what they have converted when
		// it is written. So a function must not change what it converts: that may be in a
		// cache.
		*metadata(out) = *metadata(in)
		if err := convert(context.Background(), in, out); err != nil {
			return fmt.Errorf("cannot convert %s from %s to %s: %w", nameOf(from.Kind, metadata(in)), from.GroupVersion(), to.GroupVersion(), err)
		}
		return nil
	})
}

// nameOf names an object as users know it.
func nameOf(kind string, m *metav1.ObjectMeta) string {
	switch {
	case m.Name == "": // it is yet to be generated
		return kind
	case m.Namespace == "":
		return kind + " " + m.Name
	}
	return kind + " " + m.Namespace + "/" + m.Name
}

// metadata returns the ObjectMeta that all our kinds embed.
func metadata(o object) *metav1.ObjectMeta { return o.GetObjectMeta().(*metav1.ObjectMeta) }

// kindOf returns the one kind that a type is.
func kindOf[T object](s *runtime.Scheme) (schema.GroupVersionKind, error) {
	kind := reflect.TypeFor[T]().Elem()
	kinds, _, err := s.ObjectKinds(reflect.New(kind).Interface().(runtime.Object))
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if len(kinds) != 1 {
		return schema.GroupVersionKind{}, fmt.Errorf("apiserver: %s is %d kinds, %v, not one", kind, len(kinds), kinds)
	}
	return kinds[0], nil
}

// newList returns an empty list of a kind.
func newList(s *runtime.Scheme, kind schema.GroupVersionKind) (runtime.Object, error) {
	return s.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
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

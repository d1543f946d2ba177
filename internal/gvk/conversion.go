package gvk

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Converts reports whether a scheme has a conversion function between two struct types. A scheme can
// only be asked by trying, with empty objects: other errors and panics are the function's.
func Converts(s *runtime.Scheme, from, to reflect.Type) (found bool) {
	defer func() {
		if recover() != nil {
			found = true
		}
	}()
	err := s.Convert(reflect.New(from).Interface(), reflect.New(to).Interface(), nil)
	// apimachinery/pkg/conversion.Converter.Convert
	return err == nil || err.Error() != fmt.Sprintf("converting (%s) to (%s): unknown conversion", from, to)
}

// AddConversion registers a conversion between two kinds that the scheme has, and one between their
// lists.
func AddConversion(s *runtime.Scheme, from, to schema.GroupVersionKind, convert conversion.ConversionFunc) error {
	known := s.AllKnownTypes()
	return errors.Join(s.AddConversionFunc(nilOf(known[from]), nilOf(known[to]), convert), AddListConversion(s, from, to, convert))
}

// AddListConversion registers a conversion between the lists of two kinds, which converts each item,
// if both have a list (see [ListOf]).
func AddListConversion(s *runtime.Scheme, from, to schema.GroupVersionKind, convert conversion.ConversionFunc) error {
	fromList, toList := ListOf(s, from), ListOf(s, to)
	if fromList == nil || toList == nil {
		return nil
	}
	return s.AddConversionFunc(nilOf(fromList), nilOf(toList), func(in, out any, scope conversion.Scope) error {
		return convertList(reflect.ValueOf(in).Elem(), reflect.ValueOf(out).Elem(), scope, convert)
	})
}

// ListOf returns the type of the list of a kind. It returns nil if the scheme has no list with ListMeta
// and with Items of the type of the kind.
func ListOf(s *runtime.Scheme, kind schema.GroupVersionKind) reflect.Type {
	known := s.AllKnownTypes()
	list := known[kind.GroupVersion().WithKind(kind.Kind+"List")]
	if list == nil || list.Kind() != reflect.Struct {
		return nil
	}
	items, ok := list.FieldByName("Items")
	if _, hasMeta := list.FieldByName("ListMeta"); !ok || !hasMeta || items.Type != reflect.SliceOf(known[kind]) {
		return nil
	}
	return list
}

func convertList(in, out reflect.Value, scope conversion.Scope, convert conversion.ConversionFunc) error {
	out.FieldByName("ListMeta").Set(in.FieldByName("ListMeta"))
	from, to := in.FieldByName("Items"), out.FieldByName("Items")
	if from.IsNil() {
		to.SetZero()
		return nil
	}
	to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	for i := range from.Len() {
		if err := convert(from.Index(i).Addr().Interface(), to.Index(i).Addr().Interface(), scope); err != nil {
			return err
		}
	}
	return nil
}

// nilOf returns a nil pointer to a type.
func nilOf(t reflect.Type) any { return reflect.Zero(reflect.PointerTo(t)).Interface() }

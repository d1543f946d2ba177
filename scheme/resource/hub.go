package resource

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/gvk"
)

// hub is the internal version of a kind whose API has none: an object of the served version that is
// the hub of the conversions. The internal version needs a Go type of its own, because
// k8s.io/apiserver compares objects of the internal version with their apiVersion and kind, which
// are always empty there (apiserver/pkg/endpoints/handlers/fieldmanager/equality.go).
type hub[T Object] struct {
	gvk.AddedInternal
	metav1.TypeMeta
	metav1.ObjectMeta
	// Object has neither metadata nor apiVersion and kind. It is nil if runtime.Scheme made the hub.
	Object T
}

type hubList[T Object] struct {
	gvk.AddedInternal
	metav1.TypeMeta
	metav1.ListMeta
	Items []hub[T]
}

func (h *hub[T]) DeepCopyObject() runtime.Object {
	c := &hub[T]{TypeMeta: h.TypeMeta, ObjectMeta: *h.ObjectMeta.DeepCopy()}
	if !isNil(h.Object) {
		c.Object = h.Object.DeepCopyObject().(T)
	}
	return c
}

func (l *hubList[T]) DeepCopyObject() runtime.Object {
	c := &hubList[T]{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: slices.Clone(l.Items)}
	for i := range c.Items {
		c.Items[i] = *c.Items[i].DeepCopyObject().(*hub[T])
	}
	return c
}

// Body implements [gvk.Wrapper].
func (h *hub[T]) Body() runtime.Object {
	if isNil(h.Object) {
		h.Object = zero[T]()
	}
	return h.Object
}

// wrap returns the object as a hub, which shares the memory of its fields.
func wrap[T Object](obj T) hub[T] {
	body := shallowCopy(obj)
	*metadata(body) = metav1.ObjectMeta{}
	body.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return hub[T]{ObjectMeta: *metadata(obj), Object: body}
}

// unwrap returns an object of the internal version as T, which shares the memory of its fields.
func unwrap[T Object](obj runtime.Object) (T, error) {
	switch obj := obj.(type) {
	case T:
		return obj, nil
	case *hub[T]:
		t := zero[T]()
		if !isNil(obj.Object) {
			t = shallowCopy(obj.Object)
		}
		*metadata(t) = obj.ObjectMeta
		return t, nil
	default:
		return *new(T), fmt.Errorf("got a %T, expected a %s", obj, reflect.TypeFor[T]())
	}
}

func isNil[T Object](obj T) bool { return reflect.ValueOf(obj).IsNil() }

func zero[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

func shallowCopy[T Object](obj T) T {
	c := zero[T]()
	reflect.ValueOf(c).Elem().Set(reflect.ValueOf(obj).Elem())
	return c
}

// addHub registers T and its list as the internal version of their kind, with conversions from and to
// each served version.
func addHub[T Object](s *runtime.Scheme, kind schema.GroupVersionKind, versions []schema.GroupVersion) error {
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	known, hubType := s.AllKnownTypes(), reflect.TypeFor[T]().Elem()
	for _, name := range []string{kind.Kind, kind.Kind + "List"} {
		t, ok := known[internal.WithKind(name)]
		switch {
		case !ok || t == reflect.TypeFor[hub[T]]() || t == reflect.TypeFor[hubList[T]]():
		case gvk.IsAdded(t):
			return fmt.Errorf("New has been called for %s with another type than %s", kind.Kind, hubType)
		default:
			return fmt.Errorf("the internal version of %s is %s: pass that version to New instead of %s", name, t, hubType)
		}
	}
	for _, gv := range versions {
		object, list := known[gv.WithKind(kind.Kind)], known[gv.WithKind(kind.Kind+"List")]
		if list == nil {
			return fmt.Errorf("the scheme lacks %s", gv.WithKind(kind.Kind+"List"))
		}
		_, hasMeta := list.FieldByName("ListMeta")
		if items, ok := list.FieldByName("Items"); !ok || !hasMeta || items.Type != reflect.SliceOf(object) {
			return fmt.Errorf("the list %s needs ListMeta, and Items of type []%s", list, object)
		}
		if object != hubType && (!gvk.Converts(s, object, hubType) || !gvk.Converts(s, hubType, object)) {
			return fmt.Errorf("the scheme has no conversion between %s and %s", object, hubType)
		}
	}
	s.AddKnownTypeWithName(internal.WithKind(kind.Kind), &hub[T]{})
	s.AddKnownTypeWithName(internal.WithKind(kind.Kind+"List"), &hubList[T]{})
	for _, gv := range versions {
		object, list := known[gv.WithKind(kind.Kind)], known[gv.WithKind(kind.Kind+"List")]
		if err := addConversions[T](s, reflect.Zero(reflect.PointerTo(object)).Interface(), reflect.Zero(reflect.PointerTo(list)).Interface()); err != nil {
			return err
		}
	}
	return nil
}

// addConversions registers the conversions between the hub and a served version, whose objects and
// lists have the types of the arguments.
func addConversions[T Object](s *runtime.Scheme, object, list any) error {
	toHub := func(in, out any, scope conversion.Scope) error {
		t, ok := in.(T)
		if !ok {
			t = zero[T]()
			if err := scope.Convert(in, t); err != nil {
				return err
			}
		}
		*out.(*hub[T]) = wrap(t)
		return nil
	}
	fromHub := func(in, out any, scope conversion.Scope) error {
		t, err := unwrap[T](in.(*hub[T]))
		if err != nil {
			return err
		}
		if _, ok := out.(T); !ok {
			return scope.Convert(t, out)
		}
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(t).Elem())
		return nil
	}
	for _, c := range []struct {
		from, to any
		convert  conversion.ConversionFunc
	}{
		{object, (*hub[T])(nil), toHub}, {(*hub[T])(nil), object, fromHub},
		{list, (*hubList[T])(nil), ofItems(toHub)}, {(*hubList[T])(nil), list, ofItems(fromHub)},
	} {
		if err := s.AddConversionFunc(c.from, c.to, c.convert); err != nil {
			return err
		}
	}
	return nil
}

// ofItems returns a conversion of lists that converts each item.
func ofItems(convert conversion.ConversionFunc) conversion.ConversionFunc {
	return func(in, out any, scope conversion.Scope) error {
		from, to := reflect.ValueOf(in).Elem(), reflect.ValueOf(out).Elem()
		to.FieldByName("ListMeta").Set(from.FieldByName("ListMeta"))
		items, result := from.FieldByName("Items"), to.FieldByName("Items")
		if items.IsNil() {
			result.SetZero()
			return nil
		}
		result.Set(reflect.MakeSlice(result.Type(), items.Len(), items.Len()))
		for i := range items.Len() {
			if err := convert(items.Index(i).Addr().Interface(), result.Index(i).Addr().Interface(), scope); err != nil {
				return err
			}
		}
		return nil
	}
}

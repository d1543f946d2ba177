package resource

import (
	"errors"
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
	return &hub[T]{TypeMeta: h.TypeMeta, ObjectMeta: *h.ObjectMeta.DeepCopy(), Object: h.Body().DeepCopyObject().(T)}
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
	if reflect.ValueOf(h.Object).IsNil() {
		h.Object = zero[T]()
	}
	return h.Object
}

// wrap returns the object as a hub, which shares the memory of its fields.
func wrap[T Object](obj T) hub[T] {
	body := gvk.ShallowCopy(obj)
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
		t := gvk.ShallowCopy(obj.Body().(T))
		*metadata(t) = obj.ObjectMeta
		return t, nil
	default:
		return *new(T), fmt.Errorf("got a %T, expected a %s", obj, reflect.TypeFor[T]())
	}
}

func zero[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

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
		object := known[gv.WithKind(kind.Kind)]
		if gvk.ListOf(s, gv.WithKind(kind.Kind)) == nil {
			return fmt.Errorf("the scheme lacks %s with ListMeta, and with Items of type []%s", gv.WithKind(kind.Kind+"List"), object)
		}
		if object != hubType && (!gvk.Converts(s, object, hubType) || !gvk.Converts(s, hubType, object)) {
			return fmt.Errorf("the scheme has no conversion between %s and %s", object, hubType)
		}
	}
	s.AddKnownTypeWithName(internal.WithKind(kind.Kind), &hub[T]{})
	s.AddKnownTypeWithName(internal.WithKind(kind.Kind+"List"), &hubList[T]{})
	for _, gv := range versions {
		served, held := gv.WithKind(kind.Kind), internal.WithKind(kind.Kind)
		if err := errors.Join(gvk.AddConversion(s, served, held, toHub[T]), gvk.AddConversion(s, held, served, fromHub[T])); err != nil {
			return err
		}
	}
	return nil
}

// toHub converts an object of a served version.
func toHub[T Object](in, out any, scope conversion.Scope) error {
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

// fromHub converts a hub to a served version.
func fromHub[T Object](in, out any, scope conversion.Scope) error {
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

// Package gvk relates the kinds of a scheme, the Go types of their objects, and the conversions
// between the types.
package gvk

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Of returns the kind of a type, which is a pointer to a struct. It returns an error for another type
// or a list, and if the scheme has none or several kinds for it.
func Of(s *runtime.Scheme, t reflect.Type) (schema.GroupVersionKind, error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s, expected a pointer to a struct", t)
	}
	if t.Implements(reflect.TypeFor[metav1.ListMetaAccessor]()) && !t.Implements(reflect.TypeFor[metav1.ObjectMetaAccessor]()) {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s is a list, expected the type of the items", t)
	}
	kinds, _, err := s.ObjectKinds(reflect.New(t.Elem()).Interface().(runtime.Object))
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s is not registered in the scheme: %w", t, err)
	}
	if len(kinds) > 1 {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s has several kinds in the scheme: %v", t, kinds)
	}
	return kinds[0], nil
}

// Name returns the kind and name of an object for messages. Namespace and name may be empty.
func Name(kind, namespace, name string) string {
	switch {
	case name == "":
		return kind
	case namespace == "":
		return kind + " " + name
	default:
		return kind + " " + namespace + "/" + name
	}
}

// Package gvk finds the kind of a Go type, and names an object of a kind.
package gvk

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Of returns the one kind under which the scheme knows a type, a pointer to a
// struct. It is an error if the type is something else or that of a list, if the scheme
// does not know it, or knows it by several names.
func Of(s *runtime.Scheme, t reflect.Type) (schema.GroupVersionKind, error) {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, fmt.Errorf("%s is not a pointer to a struct", t)
	}
	if t.Implements(reflect.TypeFor[metav1.ListMetaAccessor]()) && !t.Implements(reflect.TypeFor[metav1.ObjectMetaAccessor]()) {
		return schema.GroupVersionKind{}, fmt.Errorf("%s is the type of a list: webhooks are given its items, one by one", t)
	}
	kinds, _, err := s.ObjectKinds(reflect.New(t.Elem()).Interface().(runtime.Object))
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the scheme does not know %s: %w", t, err)
	}
	if len(kinds) > 1 {
		return schema.GroupVersionKind{}, fmt.Errorf("the scheme knows %s by several names: %v", t, kinds)
	}
	return kinds[0], nil
}

// Name names an object as users know it. The namespace and the name may be empty.
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

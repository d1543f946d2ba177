package scheme

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The options in this file are for servers, whose codecs default objects. A CustomResourceDefinition
// declares its defaults in its schema.

// Default sets the function that gives an object of type T its defaults. Codecs of the scheme call
// it for each object that they decode, and for each item of a list (see
// [runtime.Scheme.Default]). T is a pointer to a Go type of a served version.
//
// New returns an error if the type is not registered.
func Default[T runtime.Object](set func(obj T)) Option {
	return Functions(func(s *runtime.Scheme) error {
		obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(runtime.Object)
		kinds, _, err := s.ObjectKinds(obj)
		if err != nil {
			return fmt.Errorf("default of %T: %w", obj, err)
		}
		s.AddTypeDefaultingFunc(obj, func(o any) { set(o.(T)) })
		list, err := s.New(kinds[0].GroupVersion().WithKind(kinds[0].Kind + "List"))
		if err != nil || itemOf(list) != reflect.TypeFor[T]().Elem() {
			return nil // Check reports it
		}
		s.AddTypeDefaultingFunc(list, func(o any) {
			items := reflect.ValueOf(o).Elem().FieldByName("Items")
			for i := range items.Len() {
				item := items.Index(i)
				if item.Kind() != reflect.Pointer {
					item = item.Addr()
				}
				set(item.Interface().(T))
			}
		})
		return nil
	})
}

// APIServer adds the types of the core group that k8s.io/apiserver encodes and decodes for every
// group: Status, the options of requests, and the types of discovery.
func APIServer() Option {
	return Functions(func(s *runtime.Scheme) error {
		core := schema.GroupVersion{Version: "v1"}
		metav1.AddToGroupVersion(s, core)
		s.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
		return nil
	})
}

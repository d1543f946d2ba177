package scheme

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// Check returns an error that joins all mistakes in the types of a scheme, or nil. [New] calls
// Check; call it yourself for a scheme that was built in another way, such as by
// controller-runtime's SchemeBuilder.
//
// These are errors:
//
//   - A kind with metadata, such as Pizza, has no list (PizzaList), or its list has elements of
//     another type.
//   - The type of a list's elements has no kind in the version of the list.
//   - A version with such kinds lacks ListOptions and the related types, see
//     [metav1.AddToGroupVersion].
//   - A type has several kinds or versions, so that it does not determine the kind of an object.
//   - A struct field, at any depth, has no name in its JSON tag, and would be stored under its Go
//     name.
//   - Two fields of a struct have the same JSON name, so that neither would be stored.
//
// An internal version ([runtime.APIVersionInternal]) needs neither JSON tags nor ListOptions,
// because it is never encoded.
//
// Types of Kubernetes itself, in packages below k8s.io, are not checked, because some of them break
// these rules: Binding has no list.
func Check(s *runtime.Scheme) error {
	c := checker{scheme: s, versions: map[schema.GroupVersion]map[string]reflect.Type{}, names: map[reflect.Type][]string{}}
	for gvk, t := range s.AllKnownTypes() {
		gv := gvk.GroupVersion()
		if c.versions[gv] == nil {
			c.versions[gv] = map[string]reflect.Type{}
		}
		c.versions[gv][gvk.Kind] = t
		c.names[t] = append(c.names[t], gvk.String())
	}
	for _, gv := range slices.SortedFunc(maps.Keys(c.versions), func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version))
	}) {
		c.version(gv)
	}
	return errors.Join(c.errs...)
}

type checker struct {
	scheme   *runtime.Scheme
	versions map[schema.GroupVersion]map[string]reflect.Type
	names    map[reflect.Type][]string
	errs     []error
}

// version checks the types of one version.
func (c *checker) version(gv schema.GroupVersion) {
	wrong := func(format string, args ...any) { c.wrong(gv, format, args...) }
	types := c.versions[gv]
	internal := gv.Version == runtime.APIVersionInternal
	seen := map[reflect.Type]bool{}
	hasObjects := false
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		t := types[kind]
		if strings.HasPrefix(t.PkgPath(), "k8s.io/") {
			continue
		}
		obj := reflect.New(t).Interface().(runtime.Object)
		switch _, isObject := obj.(metav1.ObjectMetaAccessor); {
		case meta.IsListType(obj):
			if item := itemOf(obj); item != nil && !slices.Contains(slices.Collect(maps.Values(types)), item) {
				wrong("%s is a list of %v, which is not registered", kind, item)
			}
		case isObject:
			hasObjects = true
			list := types[kind+"List"]
			if list == nil {
				wrong("kind %s has no list: register %sList too", kind, kind)
			} else if itemOf(reflect.New(list).Interface().(runtime.Object)) != t {
				wrong("%sList is not a list of %v", kind, t)
			}
		}
		if names := c.names[t]; len(names) > 1 {
			slices.Sort(names)
			wrong("the type %v of kind %s has several names: %s: give each a type of its own", t, kind, strings.Join(names, "; "))
		}
		if !internal {
			checkTags(t, kind, seen, func(path, what string) { wrong("%s %s", path, what) })
		}
	}
	if hasObjects && !internal && !c.scheme.Recognizes(gv.WithKind("ListOptions")) {
		wrong("has no ListOptions: call metav1.AddToGroupVersion")
	}
}

func (c *checker) wrong(gv schema.GroupVersion, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("scheme: %s: %s", gv, fmt.Sprintf(format, args...)))
}

// itemOf returns the type of a list's items, or nil if obj is not a list of structs.
func itemOf(obj runtime.Object) reflect.Type {
	items, err := meta.GetItemsPtr(obj)
	if err != nil {
		return nil
	}
	item := jsontype.Pointed(reflect.TypeOf(items).Elem().Elem())
	if item.Kind() != reflect.Struct {
		return nil
	}
	return item
}

// checkTags reports the path of each exported field below t without a name in its JSON tag,
// or with the JSON name of another field. It skips types that encode themselves, or were
// seen before.
func checkTags(t reflect.Type, path string, seen map[reflect.Type]bool, report func(path, mistake string)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		checkTags(t.Elem(), path, seen, report)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] || jsontype.EncodesItself(t) {
		return
	}
	seen[t] = true
	stored, names := jsontype.FieldsOf(t), map[string]string{}
	for _, f := range jsontype.AllFields(t) {
		name := f.Name
		if f.Struct != t {
			name = f.Struct.Name() + "." + name
		}
		if other := names[f.JSON]; !f.Tagged {
			report(path+"."+name, "has no name in its JSON tag")
		} else if other != "" && stored.Named(f.JSON) == nil {
			report(path+"."+name, "has the JSON name of "+other+": neither is stored")
		}
		names[f.JSON] = name
		checkTags(f.Type, path+"."+f.JSON, seen, report)
	}
}

package scheme

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// check returns the faults of the types of one version.
func check(gv schema.GroupVersion, objects []runtime.Object) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	types := map[string]reflect.Type{}
	var accepted []runtime.Object
	for i, obj := range objects {
		t := reflect.TypeOf(obj)
		if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
			fault("type %d, %v, is not a pointer to a struct", i+1, t)
			continue
		}
		if _, twice := types[t.Elem().Name()]; twice {
			fault("kind %s is given twice", t.Elem().Name())
			continue
		}
		types[t.Elem().Name()] = t
		accepted = append(accepted, obj)
	}

	seen := map[reflect.Type]bool{}
	for _, obj := range accepted {
		t := reflect.TypeOf(obj)
		switch _, isObject := obj.(metav1.ObjectMetaAccessor); {
		case meta.IsListType(obj):
			if item := itemOf(obj); item != nil && types[kindOf(item)] != item {
				fault("%s is a list of %v, which is not given", kindOf(t), item)
			}
		case isObject:
			list := types[kindOf(t)+"List"]
			if list == nil {
				fault("kind %s has no list: give &%sList{} too", kindOf(t), kindOf(t))
			} else if item := itemOf(reflect.New(list.Elem()).Interface().(runtime.Object)); item != t {
				fault("%sList is not a list of %v", kindOf(t), t)
			}
		}
		if gv.Version != runtime.APIVersionInternal {
			checkTags(t.Elem(), kindOf(t), seen, func(path, what string) {
				fault("%s %s", path, what)
			})
		}
	}
	return faults
}

func kindOf(t reflect.Type) string {
	if t.Kind() != reflect.Pointer {
		return t.Name()
	}
	return t.Elem().Name()
}

// itemOf returns the pointer type of a list's items; nil if obj is no list of structs.
func itemOf(obj runtime.Object) reflect.Type {
	items, err := meta.GetItemsPtr(obj)
	if err != nil {
		return nil
	}
	item := reflect.TypeOf(items).Elem().Elem()
	switch item.Kind() {
	case reflect.Struct:
		return reflect.PointerTo(item)
	case reflect.Pointer:
		return item
	default:
		return nil
	}
}

// checkTags reports the path of each exported field below t whose JSON tag does not
// name it, or gives it the name of another. A type that encodes itself, or was seen
// before, is not looked into.
func checkTags(t reflect.Type, path string, seen map[reflect.Type]bool, report func(path, fault string)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		checkTags(t.Elem(), path, seen, report)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] || encodesItself(t) {
		return
	}
	seen[t] = true
	names := map[string]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if !f.IsExported() && !f.Anonymous || tag == "-" {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
		if name == "" && !f.Anonymous {
			report(path+"."+f.Name, "has no name in its JSON tag")
		}
		if name == "" {
			name = f.Name
		} else if other, twice := names[name]; twice {
			report(path+"."+f.Name, "has the JSON name of "+other+": neither is stored")
		} else {
			names[name] = f.Name
		}
		checkTags(f.Type, path+"."+name, seen, report)
	}
}

func encodesItself(t reflect.Type) bool {
	for _, i := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

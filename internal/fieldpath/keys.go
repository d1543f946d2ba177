package fieldpath

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// CheckKeys returns an error if a type has no list at a path of names joined by dots, or
// its elements lack one of the keys. The elements of lists on the way are not named in the
// path, and * is any name. What is below a type that makes its own JSON may be anything.
func CheckKeys(t reflect.Type, path string, keys []string) error {
	lists, err := listsAt(t, strings.Split(path, "."))
	if err != nil {
		return err
	}
	var faults []error
	for _, list := range lists {
		fault := hasKeys(bare(list), keys)
		if fault == nil {
			return nil
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

func hasKeys(element reflect.Type, keys []string) error {
	for _, key := range keys {
		if len(members(element, key)) == 0 {
			return fmt.Errorf("%s has no field %q", element, key)
		}
	}
	return nil
}

// listsAt returns the types of the lists at a path, at least one if there is no error.
func listsAt(t reflect.Type, path []string) (lists []reflect.Type, err error) {
	found := members(bare(t), path[0])
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no field %q", bare(t), path[0])
	}
	for _, member := range found {
		var more []reflect.Type
		switch fault := error(nil); {
		case len(path) > 1:
			more, fault = listsAt(member, path[1:])
			err = errors.Join(err, fault)
		case bare(member) == pointedTo(member) && !unknown(bare(member)):
			err = errors.Join(err, fmt.Errorf("%q is a %s, not a list", path[0], bare(member)))
		default:
			more = []reflect.Type{member}
		}
		lists = append(lists, more...)
	}
	if len(lists) > 0 {
		return lists, nil
	}
	return nil, err
}

// members returns the types of the members of that name, or of all for *.
func members(t reflect.Type, name string) (all []reflect.Type) {
	switch {
	case unknown(t):
		return []reflect.Type{t}
	case t.Kind() == reflect.Map:
		return []reflect.Type{t.Elem()}
	case t.Kind() != reflect.Struct:
	case name != "*":
		if f, ok := fieldOf(t, name); ok {
			return []reflect.Type{f.Type}
		}
	default:
		for _, f := range reflect.VisibleFields(t) {
			all = append(all, f.Type)
		}
	}
	return all
}

// unknown reports whether nothing is known of the JSON of a type.
func unknown(t reflect.Type) bool { return t.Kind() == reflect.Interface || Opaque(t) }

// bare returns a type without the pointers and lists around it.
func bare(t reflect.Type) reflect.Type {
	for t = pointedTo(t); !unknown(t) && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array); {
		t = pointedTo(t.Elem())
	}
	return t
}

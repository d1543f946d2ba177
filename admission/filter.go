package admission

import (
	"bytes"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/threeway"
)

// Filter selects the requests for which a function is called. A function with several
// filters is called for those that pass all of them.
type Filter func(*function)

// Subresource has a function called for requests to a subresource, such as status,
// scale or exec, and not for those to the resource itself. The Go type of the function
// is that of the subresource's object: status has the kind of the resource, scale has
// autoscaling/v1 Scale, and exec core/v1 PodExecOptions. An empty name is an error.
func Subresource(name string) Filter {
	return func(f *function) {
		if name == "" {
			f.errorf("Subresource has no name")
		}
		f.subresource = name
	}
}

// On has a function of [Mutate] or [Validate] called for those operations, and for no
// others: without it, these are CREATE and UPDATE. The object of a CONNECT is its
// options, such as PodExecOptions. On is an error for functions that are made for one
// operation, and for DELETE, which has no new object: see [ValidateDelete].
func On(operations ...admissionv1.Operation) Filter {
	return func(f *function) {
		if !f.on && len(f.operations) == 1 {
			f.errorf("On is for functions of Mutate and Validate")
		}
		for _, op := range operations {
			if op != admissionv1.Create && op != admissionv1.Update && op != admissionv1.Connect {
				f.errorf("On %q: a function can be called on CREATE, UPDATE and CONNECT", op)
			}
		}
		if len(operations) == 0 {
			f.errorf("On has no operations")
		}
		f.operations, f.on = slices.Clone(operations), true
	}
}

// ForKind has a function of unstructured objects called for objects of one kind, in that
// version: with [ConvertWith], objects of other versions are converted to it. A function
// of metadata, which is the same in all versions, is called for all versions of the kind.
// Without ForKind, such functions are called for objects of every kind and version, as
// they are.
func ForKind(kind schema.GroupVersionKind) Filter {
	return func(f *function) {
		if kind.Kind == "" || kind.Version == "" {
			f.errorf("ForKind %s has no kind or no version", kind)
		}
		f.kind = kind
	}
}

// IfChanged has a function called for an update only if one of the members differs
// between the old object and the new one, as it is after the functions of [Mutate]; given
// twice, if one of all does. A member is named by a path: IfChanged("spec"),
// IfChanged("metadata.annotations['a.b/c']").
// So an object that was written before a rule existed can still get a label, a status or
// a finalizer (ratcheting; see KEP-4008 for the same with a schema). The order of the
// members of an object does not matter; null and absence differ.
//
// The objects are compared in the version of the function: what two versions keep in
// different places is the same to it. On other operations, the function is called in any
// case.
//
// A path is an error if it cannot be parsed, leads into a list, or is not one of the
// function's Go type. For functions of unstructured objects and of metadata it may be any.
func IfChanged(paths ...string) Filter {
	return func(f *function) {
		if len(paths) == 0 {
			f.errorf("IfChanged has no path")
		}
		for _, path := range paths {
			steps, err := fieldpath.Parse(path)
			if err == nil && slices.ContainsFunc(steps, func(s fieldpath.Step) bool { return s.All }) {
				err = fmt.Errorf("%q: a list can change as a whole", path)
			}
			if err == nil && !f.seesMetadata() {
				_, err = fieldpath.Resolve(f.goType, path, steps)
			}
			if err != nil {
				f.errorf("IfChanged: %w", err)
			}
			names := make([]string, len(steps))
			for i, s := range steps {
				names[i] = s.Name
			}
			f.changed = append(f.changed, names)
		}
	}
}

// UnlessDeleting has a function not called for an update, or one more deletion, of an
// object that is being deleted: one which has a deletionTimestamp, and waits for its
// finalizers. A webhook that denies the update which removes the last finalizer keeps the
// object, and often its namespace, forever. Only the timestamp of the old object counts:
// before a mutating webhook, that of a new one may be what the user wrote.
func UnlessDeleting() Filter {
	return func(f *function) { f.unlessDeleting = true }
}

// isDeleting reports whether an object, as it is stored, has a deletionTimestamp.
func isDeleting(stored []byte) bool {
	timestamp := rawjson.At(stored, "metadata", "deletionTimestamp")
	return timestamp != nil && string(timestamp) != "null"
}

// differ reports whether two objects have different values at a path. Numbers are compared
// by their text.
func differ(object, old []byte, path []string) bool {
	a, b := rawjson.At(object, path...), rawjson.At(old, path...)
	if a == nil || b == nil || bytes.Equal(a, b) {
		return (a == nil) != (b == nil)
	}
	return !threeway.Equal(a, b)
}

package admission

import (
	"bytes"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/fieldpath"
	"github.com/crdkit/crdkit/internal/merge"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Filter restricts the requests for which a function is called. A request must match all filters of
// a function; see [IfChanged] and [On] for filters that are repeated. [NewHandler] panics if a
// filter is invalid.
type Filter func(*function)

// Subresource restricts a function to requests for the named subresource, such as status, scale or
// exec. Without it, a function is called only for requests for the resource itself.
//
// The Go type of the function must be that of the subresource's object: the kind of the resource
// for status, autoscaling/v1 Scale for scale, and core/v1 PodExecOptions for exec. NewHandler
// panics if the name is empty.
func Subresource(name string) Filter {
	return func(f *function) {
		if name == "" {
			f.errorf("Subresource has no name")
		}
		f.subresource = name
	}
}

// On restricts a function of [Mutate] or [Validate] to the operations, which are CREATE and UPDATE
// by default. The object of CONNECT is its options, such as PodExecOptions. Of several On filters,
// the last one takes effect.
//
// NewHandler panics in these cases:
//
//   - There is no operation, or an operation other than CREATE, UPDATE and CONNECT. DELETE has
//     no new object; use [ValidateDelete].
//   - The function is for one operation, such as a function of [ValidateUpdate].
func On(operations ...admissionv1.Operation) Filter {
	return func(f *function) {
		if !f.on && len(f.operations) == 1 {
			f.errorf("On: the operation of the function is fixed, use On with Mutate or Validate")
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

// ForKind restricts a function of *unstructured.Unstructured or *metav1.PartialObjectMetadata
// to objects of one kind. Without this filter, the function is called for objects of every
// kind, each in the version of the request.
//
// A function of *unstructured.Unstructured is called for objects of the given version, to which
// [ConvertWith] converts objects of other versions. A function of *metav1.PartialObjectMetadata is
// called for all versions of the kind, because they have the same metadata.
//
// NewHandler panics if kind or version are empty, or if the Go type of the function is of
// another kind.
func ForKind(kind schema.GroupVersionKind) Filter {
	return func(f *function) {
		if kind.Kind == "" || kind.Version == "" {
			f.errorf("ForKind %s has no kind or no version", kind)
		}
		f.kind = kind
	}
}

// IfChanged restricts a function, for updates but not for other operations, to requests that change
// the value at one of the paths. Several IfChanged filters add their paths. Examples of paths:
//
//	IfChanged("spec")
//	IfChanged("metadata.annotations['a.b/c']")
//
// The filter compares the stored object with the new object, after the preceding functions of
// [Mutate], both in the version of the function, so that a field that only the conversion moves is
// unchanged. A path can lead to a list, but not into it. The order of the members of a JSON object
// does not matter; null and an absent field differ. If the stored object cannot be converted, the
// function is called.
//
// With this filter, users can still change a label, the status or a finalizer of an object
// that violates a newer rule. KEP-4008 (ratcheting) does the same for schemas.
//
// NewHandler panics if there is no path, or if a path cannot be parsed, contains [*], or does
// not exist in the Go type of the function. Functions of *unstructured.Unstructured and
// *metav1.PartialObjectMetadata may have any path.
func IfChanged(paths ...string) Filter {
	return func(f *function) {
		if len(paths) == 0 {
			f.errorf("IfChanged has no path")
		}
		for _, path := range paths {
			steps, err := fieldpath.Parse(path)
			if err == nil && slices.ContainsFunc(steps, func(s fieldpath.Step) bool { return s.All }) {
				err = fmt.Errorf("%q: expected the path of the whole list", path)
			}
			if err == nil && !f.seesMetadata() {
				err = fieldpath.Check(f.goType, path, steps)
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

// UnlessDeleting excludes requests for objects that are already being deleted: such an object has a
// deletionTimestamp, and waits until its finalizers are removed. Use it for rules that stored
// objects may violate, such as newer rules, because a webhook that denies the update which removes
// the last finalizer keeps the object, and often its namespace, forever.
//
// Only the deletionTimestamp of the stored object counts, because a mutating webhook gets whatever
// value the user sent for the new one.
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
	return !merge.Equal(a, b)
}

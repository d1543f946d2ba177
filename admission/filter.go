package admission

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Filter says for which requests a function is called. A function with several
// filters is called for those that pass all of them.
type Filter func(*function)

// Subresource has a function called for requests to a subresource, such as status,
// scale or exec, and not for those to the resource itself. The Go type of the function
// is that of the subresource's object: status has the kind of the resource, scale has
// autoscaling/v1 Scale, and exec core/v1 PodExecOptions. An empty name is a fault.
func Subresource(name string) Filter {
	return func(f *function) {
		if name == "" {
			f.fault("Subresource has no name")
		}
		f.subresource = name
	}
}

// On has a function of [Mutate] or [Validate] called for those operations, and not for
// CREATE and UPDATE. The object of a CONNECT is its options, such as PodExecOptions. It
// is a fault for functions that are made for one operation, and for DELETE, which has
// no new object: see [ValidateDelete].
func On(operations ...admissionv1.Operation) Filter {
	return func(f *function) {
		if f.seesOld {
			f.fault("On is for functions of Mutate and Validate")
		}
		for _, op := range operations {
			if op != admissionv1.Create && op != admissionv1.Update && op != admissionv1.Connect {
				f.fault("On %q: a function can be called on CREATE, UPDATE and CONNECT", op)
			}
		}
		if len(operations) == 0 {
			f.fault("On has no operations")
		}
		f.operations = slices.Clone(operations)
	}
}

// ForKind has a function of unstructured objects or of metadata called for objects of
// one kind, in that version: with [ConvertWith], objects of other versions are converted
// to it. Without ForKind, such a function is called for objects of every kind and
// version, as they are.
func ForKind(kind schema.GroupVersionKind) Filter {
	return func(f *function) {
		if kind.Empty() {
			f.fault("ForKind has no kind")
		}
		f.kind = kind
	}
}

// IfChanged has a function called for an update only if one of the members differs
// between the old object and the new one, as it is after the functions of [Mutate]. A
// member is named by a path, names joined by dots: IfChanged("spec"). So an object that
// was written before a rule was made can still get a label, a status or a finalizer
// (ratcheting; see KEP-4008 for the same with a schema). The order of the members of an
// object does not matter; null and absence differ.
//
// On other operations, the function is called in any case. An empty path is a fault.
func IfChanged(paths ...string) Filter {
	return func(f *function) {
		if len(paths) == 0 || slices.Contains(paths, "") {
			f.fault("IfChanged has no path, or an empty one")
		}
		f.changed = append(f.changed, paths...)
	}
}

// UnlessDeleting has a function not called for an update of an object that is being
// deleted: one which has a deletionTimestamp, and waits for its finalizers. A webhook that
// denies the update which removes the last finalizer keeps the object, and often its
// namespace, for ever. Only the timestamp of the old object is believed: that of a new
// one may be what the user wrote, as in a server-side apply that creates.
func UnlessDeleting() Filter {
	return func(f *function) { f.unlessDeleting = true }
}

// isDeleting says whether an object, as it is stored, has a deletionTimestamp.
func isDeleting(stored []byte) bool {
	timestamp := valueAt(stored, "metadata.deletionTimestamp")
	return timestamp != nil && string(timestamp) != "null"
}

// differ says whether two objects have different values at a path.
func differ(object, old []byte, path string) bool {
	a, b := valueAt(object, path), valueAt(old, path)
	if bytes.Equal(a, b) {
		return false
	}
	var x, y any
	return a == nil || b == nil || codec.Slow(a, &x) != nil || codec.Slow(b, &y) != nil || !reflect.DeepEqual(x, y)
}

// valueAt returns the text of the value at a path, nil if there is none. Of duplicate
// members the last counts, as in the API server's decoder.
func valueAt(object []byte, path string) (value []byte) {
	if object == nil {
		return nil
	}
	name, rest, deeper := strings.Cut(path, ".")
	c := rawjson.NewCursor(object)
	if c.Begins() != '{' {
		return nil
	}
	for c.Enter('{'); c.Next(); {
		found := string(c.Name()) == name
		if text := c.Value(); found {
			value = text
		}
	}
	if deeper && value != nil {
		return valueAt(value, rest)
	}
	return value
}

package conversion

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/gvk"
)

// AddSpoke adds the two conversions between a version of a kind, the spoke S,
// and the kind's hub version H: first the way to the hub, then the way from it. S
// and H are pointers to the Go types, and are inferred from the functions: if these
// are swapped, the other version is the hub. Conversions are the same then, but
// [Lossless] works for spokes alone. An old version may be the hub, so that is not an error;
// [Registry.Kinds] says which version it is, and so does the log of roundtrip.Test.
//
// A function finds in out the metadata of in, to which it may add labels and
// annotations, and zero values otherwise; it fills in the rest. It must not
// change in. The registry copes with a function that leaves parts of in in out;
// other callers may not, and package roundtrip warns of it. apiVersion and kind
// are set afterwards, whatever it leaves there. An error that it returns reaches
// the user with the name of the object before it; a panic becomes such an error.
// It is called from several goroutines at a time.
//
// Both objects are the function's to keep. A function may be called more than once for an
// object: see [Lossless].
//
// It is an error if the scheme does not know one of the types, or knows it by
// several names; if they are not two versions of one kind, or have no metadata;
// if the kind has another hub already, or the spoke has been added before.
// Nothing is added then.
func AddSpoke[S, H runtime.Object](r *Registry, toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error) error {
	return addTyped(r, true, toHub, fromHub)
}

// AddDirect adds the two conversions between any two versions of a kind, A and B.
// They are used instead of the way through the hub, and make a hub unnecessary
// where there are only two versions. For the functions and for the errors, see
// [AddSpoke].
func AddDirect[A, B runtime.Object](r *Registry, aToB func(ctx context.Context, in A, out B) error, bToA func(ctx context.Context, in B, out A) error) error {
	return addTyped(r, false, aToB, bToA)
}

func addTyped[A, B runtime.Object](r *Registry, hub bool, aToB func(ctx context.Context, in A, out B) error, bToA func(ctx context.Context, in B, out A) error) error {
	a, aErr := r.kindOf(reflect.TypeFor[A]())
	b, bErr := r.kindOf(reflect.TypeFor[B]())
	if err := errors.Join(aErr, bErr); err != nil {
		return err
	}
	if aToB == nil || bToA == nil {
		return fmt.Errorf("conversion: %s needs both functions, to version %s and from it", a, b.Version)
	}
	formA, formB := r.typed(reflect.TypeFor[A]()), r.typed(reflect.TypeFor[B]())
	return r.add(hub,
		&step{from: a, to: b, in: formA, out: formB, call: func(ctx context.Context, in, out runtime.Object) error {
			return aToB(ctx, in.(A), out.(B))
		}},
		&step{from: b, to: a, in: formB, out: formA, call: func(ctx context.Context, in, out runtime.Object) error {
			return bToA(ctx, in.(B), out.(A))
		}})
}

// kindOf returns the one kind under which the scheme knows a type, a pointer to a
// struct with metadata.
func (r *Registry) kindOf(t reflect.Type) (schema.GroupVersionKind, error) {
	kind, err := gvk.Of(r.scheme, t)
	if err == nil {
		obj := reflect.New(t.Elem()).Interface().(runtime.Object)
		_, metaErr := objectMeta(obj)
		_, typeErr := typeMeta(obj)
		err = errors.Join(metaErr, typeErr)
	}
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("conversion: %w", err)
	}
	return kind, nil
}

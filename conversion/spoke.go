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

// AddSpoke adds the two conversions between a version of a kind, the spoke S, and the
// kind's hub version H. S and H are pointers to Go types, and are inferred from the
// functions.
//
// A function gets out with the metadata of in, and sets all other fields except apiVersion and
// kind, which the registry sets. It may change labels and annotations of out; if it changes other
// metadata, the conversion fails.
//
// A function must not modify in, and must be safe for concurrent use. It may retain both objects,
// and can be called more than once for an object (see [Lossless]).
//
// A function should copy slices, maps and pointers instead of assigning them from in to out,
// because other callers than the registry may not support objects that share memory. Package
// roundtrip reports functions that share memory.
//
// If a function returns an error or panics, the conversion fails, and the user sees the name of the
// object, followed by the error.
//
// AddSpoke cannot detect that you swapped the two functions, because any version may be the hub.
// Objects are still converted correctly, but [Lossless] then refuses the intended spoke, because it
// is the hub. [Registry.Kinds] and the log of roundtrip.Test tell which version is the hub.
//
// AddSpoke returns an error and adds nothing if
//
//   - a function is nil,
//   - the scheme does not know S or H, or knows it by several kinds or versions,
//   - S or H is not a pointer to a struct that embeds metav1.TypeMeta and
//     metav1.ObjectMeta,
//   - S and H are not two versions of the same kind,
//   - the kind has another hub, or
//   - conversions between the two versions were added before.
func AddSpoke[S, H runtime.Object](r *Registry, toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error) error {
	return addTyped(r, true, toHub, fromHub)
}

// AddDirect adds the two conversions between any two versions of a kind, A and B, which are used
// instead of the way through the hub. A kind with only these two versions needs no hub.
//
// For the functions and the errors, see [AddSpoke]. AddDirect also returns an error if A or
// B takes part in a [Lossless] conversion, because a direct conversion would bypass the
// hub.
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
	formA, formB := r.codecs.Form(reflect.TypeFor[A]()), r.codecs.Form(reflect.TypeFor[B]())
	return r.add(hub,
		&step{from: a, to: b, in: formA, out: formB, call: func(ctx context.Context, in, out runtime.Object) error {
			return aToB(ctx, in.(A), out.(B))
		}},
		&step{from: b, to: a, in: formB, out: formA, call: func(ctx context.Context, in, out runtime.Object) error {
			return bToA(ctx, in.(B), out.(A))
		}})
}

// kindOf returns the kind of a type in the scheme. The type must be a pointer to a struct
// with metadata.
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

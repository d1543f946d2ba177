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
	spoke, spokeErr := r.kindOf(reflect.TypeFor[S]())
	hub, hubErr := r.kindOf(reflect.TypeFor[H]())
	if err := errors.Join(spokeErr, hubErr); err != nil {
		return err
	}
	return addFunctions(r, spoke, hub, toHub, fromHub)
}

// addFunctions adds the functions between two kinds, whose types may be unstructured.
func addFunctions[S, H runtime.Object](r *Registry, spoke, hub schema.GroupVersionKind, toHub func(context.Context, S, H) error, fromHub func(context.Context, H, S) error) error {
	if toHub == nil || fromHub == nil {
		return fmt.Errorf("conversion: %s needs both functions, to version %s and from it", spoke, hub.Version)
	}
	spokeForm, hubForm := r.codecs.Form(reflect.TypeFor[S]()), r.codecs.Form(reflect.TypeFor[H]())
	return r.graph.add(
		&step{from: spoke, to: hub, in: spokeForm, out: hubForm, function: func(ctx context.Context, in, out runtime.Object) error {
			return toHub(ctx, in.(S), out.(H))
		}},
		&step{from: hub, to: spoke, in: hubForm, out: spokeForm, function: func(ctx context.Context, in, out runtime.Object) error {
			return fromHub(ctx, in.(H), out.(S))
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

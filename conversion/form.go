package conversion

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// step is one conversion function: from one version of a kind to another.
type step struct {
	from, to schema.GroupVersionKind
	in, out  form
	call     func(ctx context.Context, in, out runtime.Object) error
	// What from and to are in an object.
	fromType, toType metav1.TypeMeta
	// convert converts the parts of an object; call is not called then.
	convert func(ctx context.Context, w *worker, p parts) (parts, error)
	// shares is set if the function may leave parts of in in out: see [watch.Call].
	shares bool
	// plain is the step as it was before it became lossless; nil if it has not.
	plain *step
}

// form is how a function wants to see an object.
type form interface {
	// source returns an object of that type with those parts; it has the rest of the
	// metadata from the worker's object.
	source(w *worker, t metav1.TypeMeta, p parts) (runtime.Object, error)
	// target returns an object of that type for a function to fill in: it has all of
	// the metadata, and no body.
	target(w *worker, t metav1.TypeMeta, p parts) (runtime.Object, error)
	// encode returns the body of an object. It may take the object apart.
	encode(w *worker, obj runtime.Object) (body []byte, err error)
	// metadata returns the labels and annotations of an object that a function has
	// filled in, and an error if other metadata is not what target has set. It sets the
	// type again: a function may have copied that of its source.
	metadata(w *worker, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error)
}

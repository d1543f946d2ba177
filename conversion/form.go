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
	// fields converts the body as text, and takes the place of the above.
	fields func(body []byte) ([]byte, error)
}

// form is how a function wants to see an object.
type form interface {
	// blank returns an object that has nothing but that type, and the metadata of the
	// worker's object with those labels and annotations.
	blank(w *worker, t metav1.TypeMeta, labels, annotations map[string]string) (runtime.Object, error)
	// decode fills in the rest from a body.
	decode(w *worker, obj runtime.Object, body []byte) error
	// encode returns the body of an object. It may take the object apart.
	encode(w *worker, obj runtime.Object) (body []byte, err error)
	// metadata returns the labels and annotations of an object that a function has
	// filled in, and an error if other metadata is not what blank has set. It sets the
	// type again: a function may have copied that of its source.
	metadata(w *worker, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error)
}

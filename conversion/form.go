package conversion

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// step is one conversion function: from one version of a kind to another.
type step struct {
	from, to schema.GroupVersionKind
	in, out  form
	call     func(ctx context.Context, in, out runtime.Object) error
	// fields converts the body as text, and takes the place of the above.
	fields func(body []byte) ([]byte, error)
}

// form is how a function wants to see an object.
type form interface {
	// blank returns an object that has nothing but its type and the metadata of the
	// worker's object, with those labels and annotations.
	blank(w *worker, kind schema.GroupVersionKind, labels, annotations map[string]string) (runtime.Object, error)
	// decode fills in the rest from a body.
	decode(w *worker, obj runtime.Object, body []byte) error
	// encode returns the body of an object. It may take the object apart.
	encode(w *worker, obj runtime.Object) (body []byte, err error)
	// metadata returns the object's labels and annotations, and an error if other
	// metadata is not what blank has set.
	metadata(w *worker, obj runtime.Object) (labels, annotations map[string]string, err error)
}

package conversion

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// step is one conversion: from one version of a kind to another.
type step struct {
	from, to schema.GroupVersionKind
	in, out  representation
	call     func(ctx context.Context, in, out runtime.Object) error
	// The fields of an object that from and to name.
	fromType, toType metav1.TypeMeta
	// convertPayload converts the payload of an object; call is not called then.
	convertPayload func(ctx context.Context, c *converter, p payload) (payload, error)
	// shares is set if the function may leave parts of in in out: see [trace.Call].
	shares bool
	// plain is the step as it was before it became lossless; nil if it has not.
	plain *step
}

// payload is what a step may change of an object. The body is a JSON object of all members but
// apiVersion, kind and metadata; it may be in the converter's buffer, and is good until the
// next step.
type payload struct {
	body                []byte
	labels, annotations map[string]string
}

// representation is how a function sees an object: as a Go type, or as a map.
type representation interface {
	// decode returns a new object of that type with the payload and the metadata of the
	// converter's object.
	decode(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error)
	// blank returns a new object for a function to fill in. It has the metadata, with
	// copies of the payload's labels and annotations, and no body.
	blank(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error)
	// metadata returns the labels and annotations of an object that a function has
	// filled in, and an error if other metadata is not what blank has set. It sets the
	// type again: a function may have copied that of its source.
	metadata(c *converter, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error)
	// encode returns the body of an object.
	encode(c *converter, obj runtime.Object) (body []byte, err error)
}

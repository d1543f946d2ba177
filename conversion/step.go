package conversion

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/lost"
)

// step is one conversion: from one version of a kind to another.
type step struct {
	from, to schema.GroupVersionKind
	in, out  representation
	call     func(ctx context.Context, in, out runtime.Object) error
	// The apiVersion and kind of from and to.
	fromType, toType metav1.TypeMeta
	// convertPayload, if it is set, converts the payload of an object instead of call.
	convertPayload func(ctx context.Context, c *converter, p payload) (payload, error)
	// shares is set if the function may let out share memory with in: see [trace.Call].
	shares bool
	// plain is the step without [Lossless], or nil if the step is not lossless.
	plain *step
}

// payload holds the parts of an object that a step may change. Its body may be in the converter's
// buffer, and is valid until the next step.
type payload = lost.Payload

// representation is the form in which a function gets an object: as a Go type, or as a map.
type representation interface {
	// decode returns a new object with the payload, and the metadata of the converter's
	// object.
	decode(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error)
	// blank returns a new object for a function to fill in. It has the metadata, with
	// copies of the payload's labels and annotations, and no body.
	blank(c *converter, t metav1.TypeMeta, p payload) (runtime.Object, error)
	// metadata returns the labels and annotations of an object that a function has filled
	// in. It returns an error if other metadata differs from the metadata that blank has
	// set. It sets apiVersion and kind again, because a function may have copied them from
	// its source.
	metadata(c *converter, obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error)
	// encode returns the body of an object.
	encode(c *converter, obj runtime.Object) (body []byte, err error)
}

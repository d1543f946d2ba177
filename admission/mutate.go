package admission

import (
	"bytes"
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/threeway"
)

// Mutate adds a function that changes objects of one type, a pointer to a struct, when
// they are created or updated. T may also be *unstructured.Unstructured or
// *metav1.PartialObjectMetadata, for the objects of every kind that reach the handler:
// see [ForKind]. The function changes the object in place; what it changes becomes a JSON
// patch. It must be idempotent, because the API server may call it again for the same
// request (reinvocationPolicy), and must not expect that the object is valid, because
// the schema is checked later.
//
// Of a struct that the object of the request lacks, the patch has what the function set,
// and not the zero values of the Go type beside it. With [ConvertWith], a change that the
// version of the request cannot express is lost.
//
// An error stops the chain. See the package documentation for which errors deny
// and which leave the request undecided.
func Mutate[T runtime.Object](f func(ctx context.Context, obj T) error, filters ...Filter) Option {
	return func(h *handler) {
		h.mutators = append(h.mutators, prepare[T](h, function{
			operations: []admissionv1.Operation{admissionv1.Create, admissionv1.Update},
			mutate:     func(ctx context.Context, obj runtime.Object) error { return f(ctx, obj.(T)) },
		}, f == nil, filters))
	}
}

// mutate runs the mutating functions and makes the patches. Neighbours that want the
// object alike share one decoded object, and so one patch.
func (c *call) mutate(ctx context.Context) error {
	var chain []*function
	run := func(more bool) error {
		if len(chain) == 0 {
			return nil
		}
		err := c.mutateWith(ctx, chain, more)
		chain = chain[:0]
		return err
	}
	for _, f := range c.handler.mutators {
		if len(chain) > 0 && (f.representation != chain[0].representation || f.kindFor(c) != chain[0].kindFor(c) || f.changed != nil) {
			if err := run(true); err != nil {
				return err
			}
		}
		applies, err := f.applies(ctx, c)
		if err != nil {
			return err
		}
		if applies {
			chain = append(chain, f)
		}
	}
	return run(len(c.handler.validators) > 0)
}

// mutateWith runs functions that want the object alike. If more functions follow, they
// see the result.
func (c *call) mutateWith(ctx context.Context, chain []*function, more bool) error {
	kind, as := chain[0].kindFor(c), chain[0].representation
	obj, err := c.decode(ctx, &c.memory.Memory, c.object, kind, as, false)
	if err != nil {
		return c.asBadRequest(err)
	}
	before, err := c.encode(ctx, c.memory.before[:0], obj, kind, as)
	if err != nil {
		return err
	}
	c.memory.before = before
	for _, f := range chain {
		if err := c.run(ctx, kind, func(ctx context.Context) error { return f.mutate(ctx, obj) }); err != nil {
			return err
		}
	}
	after, err := c.encode(ctx, c.memory.after[:0], obj, kind, as)
	if err != nil {
		return err
	}
	c.memory.after = after
	if bytes.Equal(before, after) {
		return nil
	}
	// Both are converted back, so that what the conversion itself makes of the
	// object is on both sides, and is not taken for the function's change.
	if before, err = c.convert(ctx, before, kind.GroupVersion(), c.kind.GroupVersion()); err != nil {
		return err
	}
	if after, err = c.convert(ctx, after, kind.GroupVersion(), c.kind.GroupVersion()); err != nil {
		return err
	}
	makePatch := threeway.Patch
	if kind != c.kind {
		makePatch = threeway.PatchConverted
	}
	p, merged, err := makePatch(c.object, before, after, c.listKeys(kind, as), more)
	if err != nil || p == nil {
		return err
	}
	c.patches = append(c.patches, p)
	if more {
		c.object = merged
	}
	return nil
}

// encode appends the text of an object, with its type, which a function that
// assigns the whole object has cleared.
func (c *call) encode(ctx context.Context, b []byte, obj runtime.Object, kind schema.GroupVersionKind, as representation) (text []byte, err error) {
	err = guard(ctx, "the encoder of the object", func() error {
		if k := obj.GetObjectKind(); k.GroupVersionKind() != kind {
			k.SetGroupVersionKind(kind)
		}
		text, err = as.encode(&c.memory.Memory, b, obj)
		return err
	})
	return text, err
}

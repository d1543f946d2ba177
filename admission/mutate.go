package admission

import (
	"bytes"
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/merge"
)

// Mutate adds a function that changes objects in place when they are created or updated; see [On]
// for CONNECT. The changes become a JSON patch. T is one of these types:
//
//   - A pointer to a struct that is registered in the scheme. The function is called for this kind.
//   - *unstructured.Unstructured or *metav1.PartialObjectMetadata. The function is called for
//     objects of every kind; see [ForKind].
//
// The function must be idempotent, because the API server may call it again for the same request
// (reinvocationPolicy); accept invalid objects, because the API server validates the object against
// the schema later; and be safe for concurrent use.
//
// If a function sets spec.size of an object without spec, the patch adds only spec.size, and no
// zero values of other fields. With [ConvertWith], a change that the version of the request cannot
// express is lost.
//
// The package documentation lists the errors that deny the request, and the errors that leave it
// undecided.
func Mutate[T runtime.Object](f func(ctx context.Context, obj T) error, filters ...Filter) Option {
	return func(h *handler) {
		made := prepare[T](h, function{
			operations: []admissionv1.Operation{admissionv1.Create, admissionv1.Update},
			mutate:     func(ctx context.Context, obj runtime.Object) error { return f(ctx, obj.(T)) },
		}, f == nil, filters)
		made.listKeys = listmapkeys.OfType(made.goType)
		h.mutators = append(h.mutators, made)
	}
}

// mutate runs the mutating functions and makes the patches. Neighbors that want the same
// type and version share one decoded object and one patch. If more is true, functions
// that are called next see the result.
func (c *call) mutate(ctx context.Context, more bool) error {
	var chain []*function
	runChain := func(more bool) error {
		if len(chain) == 0 {
			return nil
		}
		err := c.mutateWith(ctx, chain, more)
		chain = chain[:0]
		return err
	}
	for _, f := range c.handler.mutators {
		// IfChanged (f.changed) compares the object after the functions before it.
		if len(chain) > 0 && (f.form != chain[0].form || f.kindFor(c) != chain[0].kindFor(c) || f.changed != nil) {
			if err := runChain(true); err != nil {
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
	return runChain(more)
}

// mutateWith runs functions that want the same type and version of the object. If
// more is true, later functions see the result.
func (c *call) mutateWith(ctx context.Context, chain []*function, more bool) error {
	wanted, form := chain[0].kindFor(c), chain[0].form
	obj, err := c.decode(ctx, &c.buffers.Arena, c.object, wanted, form, false)
	if err != nil {
		return c.asBadRequest(err)
	}
	before, err := c.encode(ctx, c.buffers.before[:0], obj, wanted, form)
	if err != nil {
		return err
	}
	c.buffers.before = before
	for _, f := range chain {
		if err := c.callFunction(ctx, wanted, func(ctx context.Context) error { return f.mutate(ctx, obj) }); err != nil {
			return err
		}
	}
	after, err := c.encode(ctx, c.buffers.after[:0], obj, wanted, form)
	if err != nil {
		return err
	}
	c.buffers.after = after
	if bytes.Equal(before, after) {
		return nil
	}
	// Both are converted back, so that changes by the conversion itself are on both sides, and are
	// not taken for changes by the function.
	if before, err = c.handler.convert(ctx, before, wanted, c.kind); err != nil {
		return err
	}
	if after, err = c.handler.convert(ctx, after, wanted, c.kind); err != nil {
		return err
	}
	p, merged, err := merge.Patch(c.object, before, after, c.listKeys(wanted, chain[0]), wanted != c.kind, more)
	if err != nil || p == nil {
		return err
	}
	c.patches = append(c.patches, p)
	if more {
		c.object = merged
	}
	return nil
}

// encode appends the JSON of an object. It restores the type, which a function that assigns
// the whole object has cleared.
func (c *call) encode(ctx context.Context, b []byte, obj runtime.Object, wanted schema.GroupVersionKind, form *codec.Form) (text []byte, err error) {
	err = guard(ctx, "the encoder of the object", func() error {
		if k := obj.GetObjectKind(); k.GroupVersionKind() != wanted {
			k.SetGroupVersionKind(wanted)
		}
		text, err = form.Append(&c.buffers.Arena, b, obj)
		return err
	})
	return text, err
}

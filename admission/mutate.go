package admission

import (
	"bytes"
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/admission/internal/patch"
)

type mutator struct {
	kind      schema.GroupVersionKind
	newObject func() runtime.Object
	mutate    func(ctx context.Context, obj runtime.Object) error
}

// Mutate adds a function that changes objects of one type, a pointer to a
// struct, when they are created or updated. It changes the object in place; what
// it changes becomes a JSON patch. It must be idempotent, because the API server
// may call it again for the same request (reinvocationPolicy), and must not
// expect that the object is valid, because the schema is checked later.
//
// An error stops the chain. See the package documentation for which errors deny
// and which leave the request undecided.
func Mutate[T runtime.Object](f func(ctx context.Context, obj T) error) Option {
	return func(h *handler) {
		if f == nil {
			h.faults = append(h.faults, errNoFunction)
		}
		h.mutators = append(h.mutators, mutator{
			kind:      kindOf[T](h),
			newObject: newObject[T],
			mutate:    func(ctx context.Context, obj runtime.Object) error { return f(ctx, obj.(T)) },
		})
	}
}

// mutate runs the mutating functions and makes the patch. Neighbours of one type
// share one decoded object, and so one patch.
func (c *call) mutate(ctx context.Context) error {
	if op := c.request.Operation; op != admissionv1.Create && op != admissionv1.Update {
		return nil
	}
	var chain []mutator
	for _, m := range c.handler.mutators {
		if c.handler.calls(m.kind, c.kind()) {
			chain = append(chain, m)
		}
	}
	for len(chain) > 0 {
		n := 1
		for n < len(chain) && chain[n].kind == chain[0].kind {
			n++
		}
		if err := c.mutateAs(ctx, chain[:n]); err != nil {
			return err
		}
		chain = chain[n:]
	}
	return nil
}

// mutateAs runs functions of one type.
func (c *call) mutateAs(ctx context.Context, chain []mutator) error {
	kind := chain[0].kind
	obj, err := c.decode(ctx, c.object, kind, chain[0].newObject)
	if err != nil {
		return c.theirs(err)
	}
	before, err := c.encode(ctx, obj, kind)
	if err != nil {
		return err
	}
	for _, m := range chain {
		if err := c.guard(ctx, func() error { return m.mutate(ctx, obj) }); err != nil {
			return err
		}
	}
	after, err := c.encode(ctx, obj, kind)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		return nil
	}
	// Both are converted back, so that what the conversion itself makes of the
	// object is on both sides, and is not taken for the function's change.
	if before, err = c.convert(ctx, before, kind.GroupVersion(), c.kind().GroupVersion()); err != nil {
		return err
	}
	if after, err = c.convert(ctx, after, kind.GroupVersion(), c.kind().GroupVersion()); err != nil {
		return err
	}
	makePatch := patch.Make
	if kind != c.kind() {
		makePatch = patch.MakeConverted
	}
	p, err := makePatch(c.object, before, after)
	if err != nil {
		return err
	}
	return c.apply(p)
}

// encode returns the text of an object, with its type, which a function that
// assigns the whole object has cleared.
func (c *call) encode(ctx context.Context, obj runtime.Object, kind schema.GroupVersionKind) (text []byte, err error) {
	obj.GetObjectKind().SetGroupVersionKind(kind)
	err = c.guard(ctx, func() error {
		text, err = json.Marshal(obj)
		return err
	})
	return text, err
}

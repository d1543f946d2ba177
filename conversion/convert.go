package conversion

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
	"github.com/crdkit/crdkit/internal/trace"
)

// Convert converts one object, given as JSON, to another version of its kind, and returns its JSON.
// An object that has the version already is returned unchanged. Convert does not modify text, and
// the result shares no memory with it.
//
// Convert returns an error that names the object, both versions and the reason if
//
//   - text is not a JSON object, or has no apiVersion or kind,
//   - the registry does not convert the kind or one of the versions,
//   - a conversion function returns an error, or panics,
//   - a conversion function changes metadata other than labels and annotations, or
//   - the result is nested deeper than the API server reads.
//
// If a function panics, the logger of ctx also logs the panic with its stack.
func (r *Registry) Convert(ctx context.Context, text []byte, to schema.GroupVersion) ([]byte, error) {
	c := r.newConverter()
	c.watcher, c.throughHub = trace.From(ctx), trace.IsThroughHub(ctx)
	o, cursor := &object{}, rawjson.NewCursor(text)
	r.parseObject(&c.memory, &cursor, o)
	if err := cursor.End(); err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: not a JSON object: %w", o, to, err)
	}
	out, err := c.convertObject(ctx, nil, o, nil, to)
	if err != nil {
		return nil, err
	}
	r.release(c)
	return out, nil
}

// converter converts objects one after another, and reuses its buffers. Memory that a
// function has received is never reused.
type converter struct {
	registry *Registry
	object   *object            // that is being converted
	before   *metav1.ObjectMeta // the metadata, which functions must not change
	route    *route             // of the last object

	memory  codec.Memory
	cursor  rawjson.Cursor
	source  []byte // the body of the object
	body    []byte // that was encoded
	text    []byte // of a part: see convertInParallel
	largest int    // size of an object so far

	watcher    trace.Watcher // of this conversion alone, or nil
	throughHub bool          // for an object that has the version already: see package trace
}

func (r *Registry) newConverter() *converter {
	if c, _ := r.converters.Get().(*converter); c != nil {
		return c
	}
	return &converter{registry: r}
}

// release returns a converter to the pool after it has converted all of its objects. After
// an error or a panic it is not released, because its state is unknown.
func (r *Registry) release(c *converter) {
	if c.largest > review.Small || cap(c.text) > review.Small { // must not stay
		return
	}
	c.watcher, c.throughHub = nil, false
	c.object = nil
	r.converters.Put(c)
}

// convertObject converts an object, and appends the result to dst. With a cursor, it first reads the
// object there.
//
// A panic becomes an error wherever it occurs, because a type may have its own decoder or
// encoder.
func (c *converter) convertObject(ctx context.Context, dst []byte, o *object, at *rawjson.Cursor, to schema.GroupVersion) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, panicked(ctx, v, o.kind, o.meta.Namespace, o.meta.Name, o.apiVersion, to)
		}
	}()
	c.object = o
	if at != nil {
		c.registry.parseObject(&c.memory, at, o)
	}
	c.largest = max(c.largest, len(o.text))
	if o.err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", o, to, o.err)
	}
	if o.gv == to && !c.throughHub {
		return append(dst, o.text...), nil
	}
	err = c.findRoute(o.gv.WithKind(o.kind), to)
	if err == nil {
		c.before = snapshotMetadata(&o.meta)
		c.source = o.body(c.source[:0])
		p := payload{Body: c.source, Labels: o.meta.Labels, Annotations: o.meta.Annotations}
		if p, err = c.convertAlong(ctx, c.route.steps, p); err == nil {
			begin := len(dst)
			dst, err = o.append(dst, c.route.head, p)
			if err == nil && !rawjson.IsNestedIn(dst[begin:], reviewLevels) {
				err = errors.New("the result is nested deeper than the API server reads")
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s from %s to %s: %w", o, o.apiVersion, to, err)
	}
	o.meta = metav1.ObjectMeta{} // it is the functions' now
	return dst, nil
}

// panicked returns the error for a recovered panic, and logs it.
func panicked(ctx context.Context, v any, kind, namespace, name, from string, to schema.GroupVersion) error {
	klog.FromContext(ctx).Error(logtext.Error(fmt.Errorf("panic: %v", v)), "Conversion panicked",
		"kind", logtext.Text(kind), "object", klog.KRef(logtext.Text(namespace), logtext.Text(name)),
		"from", logtext.Text(from), "to", logtext.Text(to.String()), "stack", string(debug.Stack()))
	return fmt.Errorf("cannot convert %s from %s to %s: panic: %v", gvk.Name(kind, namespace, name), from, to, v)
}

// reviewLevels is how many levels a ConversionReview has around an object.
const reviewLevels = 3

// findRoute sets the route of an object. Most objects have the same route as the object
// before.
func (c *converter) findRoute(from schema.GroupVersionKind, to schema.GroupVersion) (err error) {
	switch {
	case c.route != nil && c.route.from == from && c.route.to == to:
		return nil
	case from.GroupVersion() == to:
		c.route, err = c.registry.throughHub(from)
	default:
		c.route, err = c.registry.route(from, to)
	}
	return err
}

// convertAlong takes a payload through some steps, and encodes it at the end.
func (c *converter) convertAlong(ctx context.Context, steps []*step, p payload) (payload, error) {
	p, obj, as, err := c.walk(ctx, steps, p, nil)
	if err == nil && obj != nil {
		p.Body, err = as.encode(c, obj)
	}
	return p, err
}

// walk takes a payload through some steps. An object that one function has filled in goes to the
// next as it is, and is encoded only where a step needs its text. If obj is not nil, it is the body
// of the payload, first in the form of the first step, and then in that of the result.
func (c *converter) walk(ctx context.Context, steps []*step, p payload, obj runtime.Object) (_ payload, _ runtime.Object, as representation, err error) {
	if obj != nil {
		as = steps[0].in
	}
	for _, s := range steps {
		if obj != nil && (s.convertPayload != nil || s.in != as) {
			if p.Body, err = as.encode(c, obj); err != nil {
				return p, nil, nil, err
			}
			obj = nil
		}
		if s.convertPayload != nil {
			if p, err = s.convertPayload(ctx, c, p); err != nil {
				return p, nil, nil, err
			}
			continue
		}
		in := obj
		if in == nil {
			if in, err = s.in.decode(c, s.fromType, p); err != nil {
				return p, nil, nil, err
			}
		}
		if obj, err = s.out.blank(c, s.toType, p); err != nil {
			return p, nil, nil, err
		}
		if err = c.callFunction(ctx, s, in, obj); err != nil {
			return p, nil, nil, err
		}
		as = s.out
		if p.Labels, p.Annotations, err = as.metadata(c, obj, s.toType); err != nil {
			return p, nil, nil, err
		}
	}
	return p, obj, as, nil
}

// callFunction calls the function of a step, and reports the call to the watcher.
func (c *converter) callFunction(ctx context.Context, s *step, in, out runtime.Object) error {
	if c.watcher == nil {
		return s.call(ctx, in, out)
	}
	after := c.watcher(trace.Call{From: s.from, To: s.to, In: in, Out: out, Func: s.call, Shares: s.shares})
	err := s.call(ctx, in, out)
	after()
	return err
}

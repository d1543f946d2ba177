package conversion

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/watch"
)

// Convert converts one object, given as JSON, to another version of its kind,
// and returns its JSON. Metadata keeps its text, as the package documentation
// says. An object that has the version already comes back as it is. The source
// is not changed, and the result shares no memory with it.
//
// The error names the object, both versions and the reason: text that is no
// object, a kind or version that is not registered, an error or a panic of a
// conversion function, or metadata which a function must not change. A panic is
// logged too, with its stack, by the logger of the context.
func (r *Registry) Convert(ctx context.Context, object []byte, to schema.GroupVersion) ([]byte, error) {
	w := r.newWorker()
	defer r.release(w)
	w.watcher, w.throughHub = watch.From(ctx), watch.IsThroughHub(ctx)
	c := rawjson.NewCursor(object)
	out, err := w.convert(ctx, nil, &c, to)
	if err != nil {
		return nil, err
	}
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", &w.object, to, err)
	}
	return out, nil
}

// convert converts the object at the cursor and appends the result to dst.
//
// A panic becomes an error, wherever it comes from: a type may have a decoder or an
// encoder of its own.
func (w *worker) convert(ctx context.Context, dst []byte, c *rawjson.Cursor, to schema.GroupVersion) (out []byte, err error) {
	o := &w.object
	defer func() {
		if v := recover(); v != nil {
			w.broken = true
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", v), "Conversion panicked",
				"kind", o.kind, "object", klog.KRef(o.meta.Namespace, o.meta.Name), "from", o.apiVersion, "to", to, "stack", string(debug.Stack()))
			out, err = nil, fmt.Errorf("cannot convert %s from %s to %s: panic: %v", o, o.apiVersion, to, v)
		}
	}()
	w.memory.Reset()
	begin := c.Offset()
	err = w.cut(c)
	w.source = c.Since(begin)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", o, to, err)
	}
	if o.gv == to && !w.throughHub {
		return append(dst, w.source...), nil
	}
	if out, err = w.follow(ctx, dst, to); err != nil {
		return nil, fmt.Errorf("cannot convert %s from %s to %s: %w", o, o.apiVersion, to, err)
	}
	return out, nil
}

// follow takes the worker's object along the route to a version, and appends the
// result to dst.
func (w *worker) follow(ctx context.Context, dst []byte, to schema.GroupVersion) ([]byte, error) {
	o := &w.object
	from := o.gv.WithKind(o.kind)
	if w.route == nil || w.route.from != from || w.route.to != to {
		var err error
		if o.gv == to {
			w.route, err = w.registry.throughHub(from)
		} else {
			w.route, err = w.registry.route(from, to)
		}
		if err != nil {
			return nil, err
		}
	}
	w.keepMetadata()
	p, err := w.run(ctx, w.route.steps, parts{o.body, o.meta.Labels, o.meta.Annotations})
	if err != nil {
		return nil, err
	}
	return o.append(dst, w.route.head, p)
}

// parts is what a step may change of an object. They may be in the worker's memory, or in
// that of its objects, and are good until the next step: see clone.
type parts struct {
	body                []byte
	labels, annotations map[string]string
}

// run takes the parts of the worker's object through some steps. An object that one
// function returns goes to the next as it is; it is encoded at the end.
func (w *worker) run(ctx context.Context, steps []*step, p parts) (parts, error) {
	var obj runtime.Object // what the body holds, once it has been decoded
	var held form
	encode := func() (err error) {
		if obj != nil {
			p.body, err = held.encode(w, obj)
			obj, held = nil, nil
		}
		return err
	}
	for _, s := range steps {
		var err error
		if s.convert != nil {
			if err = encode(); err != nil {
				return p, err
			}
			if p, err = s.convert(ctx, w, p); err != nil {
				return p, err
			}
			continue
		}
		if held != s.in {
			if err = encode(); err != nil {
				return p, err
			}
			if obj, err = s.in.source(w, s.fromType, p); err != nil {
				return p, err
			}
		}
		in := obj
		if obj, err = s.out.target(w, s.toType, p); err != nil {
			return p, err
		}
		if err = w.call(ctx, s, in, obj); err != nil {
			return p, err
		}
		if p.labels, p.annotations, err = s.out.metadata(w, obj, s.toType); err != nil {
			return p, err
		}
		held = s.out
	}
	return p, encode()
}

// call calls the function of a step, in the sight of who watches it.
func (w *worker) call(ctx context.Context, s *step, in, out runtime.Object) error {
	if w.watcher == nil {
		return s.call(ctx, in, out)
	}
	after := w.watcher(watch.Call{From: s.from, To: s.to, In: in, Out: out, Func: s.call, Shares: s.shares})
	err := s.call(ctx, in, out)
	after()
	return err
}

package conversion

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/logtext"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/review"
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
	traced := c.trace(ctx)
	o, cursor := &object{}, rawjson.NewCursor(text)
	o.parse(&c.arena, r.metadata, &cursor)
	if err := cursor.End(); err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: not a JSON object: %w", o, to, err)
	}
	out, err := c.convert(ctx, nil, o, to)
	if err == nil && !traced {
		r.release(c)
	}
	return out, err
}

// converter converts objects one after another, and reuses its buffers. Memory that a
// function has received is never reused.
type converter struct {
	registry *Registry
	objects  []object           // of a request
	object   *object            // that is being converted
	before   *metav1.ObjectMeta // its metadata, which functions must not change
	route    *route             // of the last object

	arena   codec.Arena
	source  []byte // the body of the object
	body    []byte // that was encoded
	whole   []byte // an object that is decoded
	largest int    // size of an object so far

	// These are graph.route and callFunction. Package roundtrip has others: see trace.
	findRoute func(from schema.GroupVersionKind, to schema.GroupVersion) (*route, error)
	call      func(ctx context.Context, s *step, in, out runtime.Object) error
}

func (r *Registry) newConverter() *converter {
	if c, _ := r.converters.Get().(*converter); c != nil {
		return c
	}
	return &converter{registry: r, findRoute: r.graph.route, call: callFunction}
}

func callFunction(ctx context.Context, s *step, in, out runtime.Object) error {
	return s.function(ctx, in, out)
}

// release returns a converter to the pool after it has converted all of its objects, without them: the
// next request need not have any. After an error or a panic it is not released, because its state is unknown.
func (r *Registry) release(c *converter) {
	if c.largest > review.Small { // must not stay
		return
	}
	c.object, c.objects = nil, c.objects[:0]
	r.converters.Put(c)
}

// convert converts an object, and appends the result to dst.
func (c *converter) convert(ctx context.Context, dst []byte, o *object, to schema.GroupVersion) (_ []byte, err error) {
	c.object = o
	defer c.recovered(ctx, to, &err)
	c.largest = max(c.largest, len(o.text))
	if o.err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", o, to, o.err)
	}
	// Most objects have the same route as the object before.
	if from := o.gv.WithKind(o.kind); c.route == nil || c.route.from != from || c.route.to != to {
		if c.route, err = c.findRoute(from, to); err != nil {
			return nil, c.failed(to, err)
		}
	}
	if len(c.route.steps) == 0 {
		return append(dst, o.text...), nil
	}
	c.before = snapshotMetadata(&o.meta)
	c.source = o.body(c.source[:0])
	p := payload{Body: c.source, Labels: o.meta.Labels, Annotations: o.meta.Annotations}
	if p, err = c.along(ctx, c.route.steps, p); err == nil {
		dst, err = o.append(dst, c.route.head, p)
	}
	if err == nil && !rawjson.IsNestedIn(p.Body, reviewLevels) { // and the metadata is, as it was
		err = errors.New("the result is nested deeper than the API server reads")
	}
	if err != nil {
		return nil, c.failed(to, err)
	}
	o.meta = metav1.ObjectMeta{} // it is the functions' now
	return dst, nil
}

// reviewLevels is how many levels a ConversionReview has around an object.
const reviewLevels = 3

// failed returns the error for the object that is being converted.
func (c *converter) failed(to schema.GroupVersion, err error) error {
	return fmt.Errorf("cannot convert %s from %s to %s: %w", c.object, c.object.apiVersion, to, err)
}

// recovered makes a panic an error, wherever it occurs, because a type may have its own decoder or
// encoder. It logs the panic.
func (c *converter) recovered(ctx context.Context, to schema.GroupVersion, err *error) {
	v := recover()
	if v == nil {
		return
	}
	o := c.object
	klog.FromContext(ctx).Error(logtext.Error(fmt.Errorf("panic: %v", v)), "Conversion panicked",
		"kind", logtext.Text(o.kind), "object", klog.KRef(logtext.Text(o.meta.Namespace), logtext.Text(o.meta.Name)),
		"from", logtext.Text(o.apiVersion), "to", logtext.Text(to.String()), "stack", string(debug.Stack()))
	*err = c.failed(to, fmt.Errorf("panic: %v", v))
}

// along takes a payload through some steps, and encodes it at the end.
func (c *converter) along(ctx context.Context, steps []*step, p payload) (payload, error) {
	p, obj, form, err := c.walk(ctx, steps, p, nil)
	if err == nil && obj != nil {
		p.Body, err = c.encode(form, obj)
	}
	return p, err
}

// walk takes a payload through some steps. An object that one function has filled in goes to the
// next as it is, and is encoded only where a step needs its text. If obj is not nil, it is the body
// of the payload, first in the form of the first step, and then in that of the result.
func (c *converter) walk(ctx context.Context, steps []*step, p payload, obj runtime.Object) (_ payload, _ runtime.Object, form *codec.Form, err error) {
	if obj != nil {
		form = steps[0].in
	}
	for _, s := range steps {
		if obj != nil && (s.transform != nil || s.in != form) {
			if p.Body, err = c.encode(form, obj); err != nil {
				return p, nil, nil, err
			}
			obj = nil
		}
		if s.transform != nil {
			if p, err = s.transform(ctx, c, p); err != nil {
				return p, nil, nil, err
			}
			continue
		}
		in := obj
		if in == nil {
			if in, err = c.decode(s.in, s.fromType, p); err != nil {
				return p, nil, nil, err
			}
		}
		if obj, err = c.blank(s.out, s.toType, p); err != nil {
			return p, nil, nil, err
		}
		if err = c.call(ctx, s, in, obj); err != nil {
			return p, nil, nil, err
		}
		form = s.out
		if p.Labels, p.Annotations, err = c.metadata(obj, s.toType); err != nil {
			return p, nil, nil, err
		}
	}
	return p, obj, form, nil
}

// decode returns a new object with the payload, and the metadata of the object that is being converted.
func (c *converter) decode(form *codec.Form, t metav1.TypeMeta, p payload) (obj runtime.Object, err error) {
	text := p.Body
	if form.Whole {
		o := *c.object
		if o.metadata, err = rawjson.Set(o.metadata, "managedFields", nil); err == nil {
			c.whole, err = o.append(c.whole[:0], headOf(t), p)
		}
		text = c.whole
		if err != nil {
			return nil, err
		}
	}
	if obj, err = form.Decode(&c.arena, text); err == nil && !form.Map {
		setMetadata(obj, t, &c.object.meta, p.Labels, p.Annotations)
	}
	return obj, err
}

// blank returns a new object for a function to fill in. It has the metadata, with copies of the
// payload's labels and annotations, and no body.
func (c *converter) blank(form *codec.Form, t metav1.TypeMeta, p payload) (runtime.Object, error) {
	if form.Map {
		p.Body = []byte("{}")
		return c.decode(form, t, p)
	}
	obj := form.New(&c.arena)
	setMetadata(obj, t, &c.object.meta, maps.Clone(p.Labels), maps.Clone(p.Annotations))
	return obj, nil
}

// metadata returns the labels and annotations of an object that a function has filled in. It returns an
// error if other metadata differs from what blank has set. It sets apiVersion and kind again, because a
// function may have copied them from its source.
func (c *converter) metadata(obj runtime.Object, t metav1.TypeMeta) (labels, annotations map[string]string, err error) {
	var after *metav1.ObjectMeta
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object["apiVersion"], u.Object["kind"] = t.APIVersion, t.Kind
		metadata, ok := u.Object["metadata"].(map[string]any)
		if !ok {
			return nil, nil, errors.New("the conversion function removed metadata, or replaced metadata by a value that is not an object")
		}
		after = &metav1.ObjectMeta{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, after); err != nil {
			return nil, nil, fmt.Errorf("the conversion function returned invalid metadata: %w", err)
		}
	} else {
		if after, err = objectMeta(obj); err != nil {
			return nil, nil, err
		}
		if ofType, err := typeMeta(obj); err == nil && *ofType != t {
			*ofType = t
		}
	}
	return after.Labels, after.Annotations, checkMetadata(c.before, after)
}

// encode returns the body of an object.
func (c *converter) encode(form *codec.Form, obj runtime.Object) (_ []byte, err error) {
	c.body, err = form.AppendBody(&c.arena, c.body[:0], obj)
	return c.body, err
}

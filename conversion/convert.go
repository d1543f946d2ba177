package conversion

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/rawjson"
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
	w := r.newWorker(1)
	defer r.release(w)
	out, err := w.convert(ctx, object, to)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(out), nil
}

// convert returns the text of the converted object. It is the source itself, or
// in memory of the worker, and good until that is released.
//
// A panic becomes an error, wherever it comes from: a type may have a decoder or an
// encoder of its own.
func (w *worker) convert(ctx context.Context, text []byte, to schema.GroupVersion) (out []byte, err error) {
	o := &w.object
	defer func() {
		if v := recover(); v != nil {
			w.broken = true
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", v), "Conversion panicked",
				"kind", o.kind, "object", klog.KRef(o.meta.Namespace, o.meta.Name), "from", o.apiVersion, "to", to, "stack", string(debug.Stack()))
			out, err = nil, fmt.Errorf("cannot convert %s from %s to %s: panic: %v", o, o.apiVersion, to, v)
		}
	}()
	if err := w.cut(text); err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", o, to, err)
	}
	if o.gv == to {
		return text, nil
	}
	if out, err = w.follow(ctx, to); err != nil {
		return nil, fmt.Errorf("cannot convert %s from %s to %s: %w", o, o.apiVersion, to, err)
	}
	return out, nil
}

// follow takes the object along the route to a version.
func (w *worker) follow(ctx context.Context, to schema.GroupVersion) ([]byte, error) {
	o := &w.object
	route, err := w.registry.route(o.gv.WithKind(o.kind), to)
	if err != nil {
		return nil, err
	}
	w.before = shared(&o.meta)
	w.labels, w.annotations = o.meta.Labels, o.meta.Annotations
	body := o.body
	var obj runtime.Object // what body holds, once it has been decoded
	var held form
	encode := func() error {
		if obj != nil {
			body, err = held.encode(w, obj)
			obj, held = nil, nil
		}
		return err
	}
	for _, s := range route {
		if s.fields != nil {
			if err = encode(); err != nil {
				return nil, err
			}
			if body, err = s.fields(body); err != nil {
				return nil, err
			}
			continue
		}
		if held != s.in {
			if err = encode(); err != nil {
				return nil, err
			}
			if obj, err = s.in.blank(w, s.from, w.labels, w.annotations); err != nil {
				return nil, err
			}
			if err = s.in.decode(w, obj, body); err != nil {
				return nil, err
			}
		}
		in := obj
		// The maps are copies: a label that is added to out is not added to in.
		if obj, err = s.out.blank(w, s.to, maps.Clone(w.labels), maps.Clone(w.annotations)); err != nil {
			return nil, err
		}
		if err = s.call(ctx, in, obj); err != nil {
			return nil, err
		}
		// It may have copied the type of in; the next function sees it.
		obj.GetObjectKind().SetGroupVersionKind(s.to)
		if w.labels, w.annotations, err = s.out.metadata(w, obj); err != nil {
			return nil, err
		}
		held = s.out
	}
	if err = encode(); err != nil {
		return nil, err
	}
	metadata, err := o.spliceMetadata(w.labels, w.annotations)
	if err != nil {
		return nil, err
	}
	return w.assemble(w.registry.apiVersion(to), metadata, body), nil
}

// assemble returns the text of an object.
func (w *worker) assemble(apiVersion string, metadata, body []byte) []byte {
	out := w.grow(len(apiVersion) + len(w.object.kind) + len(metadata) + len(body) + 64)
	begin := len(out)
	out = append(out, `{"apiVersion":`...)
	out = rawjson.AppendQuote(out, apiVersion)
	out = append(out, `,"kind":`...)
	out = rawjson.AppendQuote(out, w.object.kind)
	out = append(out, `,"metadata":`...)
	out = append(out, metadata...)
	if len(body) > len(`{}`) {
		out = append(out, ',')
	}
	out = append(out, body[1:]...)
	w.out = out
	return out[begin:len(out):len(out)]
}

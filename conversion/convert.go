package conversion

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
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
	o, err := cut(object)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", o, to, err)
	}
	if o.kind.GroupVersion() == to {
		return bytes.Clone(object), nil
	}
	return r.convert(ctx, o, to)
}

func (r *Registry) convert(ctx context.Context, o object, to schema.GroupVersion) (text []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot convert %s from %s to %s: %w", o, o.kind.GroupVersion(), to, err)
		}
	}()
	route, err := r.route(o.kind, to)
	if err != nil {
		return nil, err
	}
	in := route[0].newIn()
	if err := o.decode(in); err != nil {
		return nil, err
	}
	meta, err := objectMeta(in)
	if err != nil {
		return nil, err
	}
	before := *meta.DeepCopy()
	out := in
	for _, s := range route {
		in, out = out, s.newOut()
		gvk := o.kind.GroupKind().WithVersion(s.to)
		if err := s.run(ctx, in, out, &before, gvk); err != nil {
			return nil, err
		}
	}
	return o.encode(out, to.WithKind(o.kind.Kind), before)
}

// run calls the function, and holds it to the laws.
func (s *step) run(ctx context.Context, in, out runtime.Object, before *metav1.ObjectMeta, as schema.GroupVersionKind) (err error) {
	defer func() {
		if v := recover(); v != nil {
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %v", v), "Conversion function panicked",
				"kind", as.Kind, "object", klog.KRef(before.Namespace, before.Name), "from", s.from, "to", s.to, "stack", string(debug.Stack()))
			err = fmt.Errorf("the conversion function from %s to %s panicked: %v", s.from, s.to, v)
		}
	}()
	if err := passMetadata(in, out); err != nil {
		return err
	}
	out.GetObjectKind().SetGroupVersionKind(as)
	if err := s.convert(ctx, in, out); err != nil {
		return err
	}
	out.GetObjectKind().SetGroupVersionKind(as)
	return checkMetadata(before, out)
}

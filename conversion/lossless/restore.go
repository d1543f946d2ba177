package lossless

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/gvk"
	"github.com/crdkit/crdkit/internal/listkeys"
	"github.com/crdkit/crdkit/internal/lost"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// Annotation is the key of the annotation, conversion.LosslessAnnotation.
const Annotation = lost.Annotation

// Convertible is a spoke with controller-runtime's conversion methods. H is the type of their
// argument, which is the interface conversion.Hub there.
type Convertible[H runtime.Object] interface {
	runtime.Object
	ConvertTo(hub H) error
	ConvertFrom(hub H) error
}

// Restore applies the annotation of the spoke to the hub, and removes it from the hub. The spoke is the
// receiver of ConvertTo, and hub is its argument, which ConvertTo has filled in. If the spoke has no
// annotation, Restore does nothing. Restore does not change the spoke.
//
// To find fields that contradict a user's edit of the spoke, Restore converts objects without the
// annotation by the methods of S. The number of conversions is bounded, see conversion.Lossless. If
// ConvertFrom stores a copy of the hub in an annotation, set [HubCopy].
//
// An invalid annotation, see conversion.Lossless, is a *field.Error at metadata.annotations. A caller that
// ignores it drops the annotation, like conversion.DropInvalidAnnotation. All other errors are mistakes in
// the operator: an invalid option, a method that fails without the annotation too, or an object that is
// not a pointer to a struct that embeds metav1.ObjectMeta. After an error, hub is without the annotation,
// and otherwise unchanged.
//
// The versions are compared as far as spoke and hub have an apiVersion. If the hub has none, as when
// controller-runtime converts a spoke to a spoke, an annotation of fields that its Go type lacks is invalid.
func Restore[S Convertible[H], H runtime.Object](spoke S, hub H, opts ...Option) error {
	return RestoreFunc(context.Background(), spoke, hub,
		func(_ context.Context, in S, out H) error { return in.ConvertTo(out) },
		func(_ context.Context, in H, out S) error { return out.ConvertFrom(in) }, opts...)
}

// RestoreFunc is like [Restore] for conversions that are functions, such as those of conversion.AddSpoke
// and of controller-runtime's NewSpokeConverter. When a function is called, out has the metadata of in.
func RestoreFunc[S, H runtime.Object](ctx context.Context, spoke S, hub H,
	toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error, opts ...Option) error {
	from, errFrom := viewOf(spoke)
	to, errTo := viewOf(hub)
	if err := errors.Join(errFrom, errTo); err != nil {
		return err
	}
	text, ok := from.meta.Annotations[Annotation]
	o := options{hidden: []string{Annotation}, hub: to.value.Elem().Type(), noted: ok, check: true, kind: schema.GroupVersionKind{
		Group: cmp.Or(to.kind.Group, from.kind.Group), Version: to.kind.Version, Kind: cmp.Or(to.kind.Kind, from.kind.Kind),
	}}
	var err error
	for _, opt := range opts {
		err = errors.Join(err, opt(&o))
	}
	if err == nil && !ok {
		return nil
	}
	to.meta.Annotations = maps.Clone(to.meta.Annotations) // may be shared with the spoke
	delete(to.meta.Annotations, Annotation)
	if err == nil {
		err = restore(ctx, from, to, text, toHub, fromHub, &o, opts)
	}
	if len(to.meta.Annotations) == 0 {
		to.meta.Annotations = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", gvk.Name(cmp.Or(from.kind.Kind, from.value.Elem().Type().Name()), from.meta.Namespace, from.meta.Name), err)
	}
	return nil
}

func restore[S, H runtime.Object](ctx context.Context, spoke, hub *view, text string,
	toHub func(context.Context, S, H) error, fromHub func(context.Context, H, S) error, o *options, opts []Option) error {
	s, errSpoke := spoke.payload()
	h, errHub := hub.payload()
	if err := errors.Join(errSpoke, errHub); err != nil {
		return err
	}
	r := lost.Restorer{
		Spoke: spoke.kind.Version,
		ToHub: func(ctx context.Context, p lost.Payload) (lost.Payload, error) {
			return convert(ctx, spoke, hub, p, toHub)
		},
		ToSpoke: func(ctx context.Context, p lost.Payload) (lost.Payload, error) {
			p, err := convert(ctx, hub, spoke, p, fromHub)
			return p.Without(o.hidden...), err
		},
		Earlier: func(version string) (lost.Hub, error) {
			if hub.kind.Version != "" && hub.kind.Version != version {
				return lost.Hub{}, fmt.Errorf("expected the hub %q", hub.kind.Version)
			}
			o.tree, o.kind.Version, o.check = nil, version, false
			for _, opt := range opts {
				if err := opt(o); err != nil {
					return lost.Hub{}, err
				}
			}
			return lost.Hub{Lists: o.tree, Maps: sync.OnceValue(func() *listkeys.Tree { return o.tree.Over(listkeys.OfType(o.hub)) })}, nil
		},
	}
	restored, err := r.Restore(ctx, s.Without(o.hidden...), h, text)
	restored = restored.Without(o.hidden...)
	if err == nil && hub.kind.Version == "" {
		if unknown, _ := kjson.UnmarshalStrict(restored.Body, reflect.New(o.hub).Interface()); len(unknown) > 0 {
			err = fmt.Errorf("recorded for the hub %q: %w", o.kind.Version, errors.Join(unknown...))
		}
	}
	switch {
	case err != nil && ctx.Err() != nil: // then the annotation may be valid
		return fmt.Errorf("%s: %w", lost.Field(), ctx.Err())
	case err != nil:
		return lost.Invalid(err)
	}
	made, err := hub.decode(hub, restored)
	if err != nil {
		return err
	}
	typeOf, meta := hub.object.GetObjectKind().GroupVersionKind(), *hub.meta
	meta.Labels, meta.Annotations = restored.Labels, restored.Annotations
	hub.value.Elem().Set(made.value.Elem())
	hub.object.GetObjectKind().SetGroupVersionKind(typeOf)
	*hub.meta = meta
	return nil
}

// convert converts a payload by a function. From and to are objects of its types.
func convert[In, Out runtime.Object](ctx context.Context, from, to *view, p lost.Payload, f func(context.Context, In, Out) error) (lost.Payload, error) {
	in, err := from.decode(from, p)
	if err != nil {
		return lost.Payload{}, err
	}
	out, err := to.decode(from, lost.Payload{Body: []byte(`{}`), Labels: p.Labels, Annotations: p.Annotations})
	if err != nil {
		return lost.Payload{}, err
	}
	if err := f(ctx, in.object.(In), out.object.(Out)); err != nil {
		return lost.Payload{}, err
	}
	return out.payload()
}

// view is an object with its parts.
type view struct {
	object runtime.Object
	value  reflect.Value // a pointer to the struct
	meta   *metav1.ObjectMeta
	kind   schema.GroupVersionKind // as far as it is known
}

func viewOf(obj runtime.Object) (*view, error) {
	v := &view{object: obj, value: reflect.ValueOf(obj)}
	if accessor, ok := obj.(metav1.ObjectMetaAccessor); ok && v.value.Kind() == reflect.Pointer && !v.value.IsNil() {
		v.meta, _ = accessor.GetObjectMeta().(*metav1.ObjectMeta)
	}
	if v.meta == nil {
		return nil, fmt.Errorf("%T is not a pointer to a struct that embeds metav1.ObjectMeta", obj)
	}
	v.kind = obj.GetObjectKind().GroupVersionKind()
	return v, nil
}

// payload encodes the object.
func (v *view) payload() (lost.Payload, error) {
	var m codec.Memory
	text, err := m.Encode(v.object)
	if err != nil {
		return lost.Payload{}, err
	}
	body, err := codec.AppendBody(nil, text)
	return lost.Payload{Body: body, Labels: v.meta.Labels, Annotations: v.meta.Annotations}, err
}

// decode returns a new object of the type of v with a payload. Its other metadata is that of an object.
func (v *view) decode(of *view, p lost.Payload) (*view, error) {
	meta := *of.meta
	meta.Labels, meta.Annotations, meta.ManagedFields = p.Labels, p.Annotations, nil
	metadata, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	text := p.Body
	if apiVersion, kind := v.kind.ToAPIVersionAndKind(); kind != "" {
		for name, value := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
			if text, err = rawjson.Set(text, name, rawjson.Quote(value)); err != nil {
				return nil, err
			}
		}
	}
	if text, err = rawjson.Set(text, "metadata", metadata); err != nil {
		return nil, err
	}
	obj := reflect.New(v.value.Elem().Type()).Interface().(runtime.Object) // as v is
	if err := codec.Decode(text, obj); err != nil {
		return nil, err
	}
	return viewOf(obj)
}

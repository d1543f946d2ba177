package lossless

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Restore restores the fields of the annotation of spoke in hub, and removes the annotation from hub.
// The spoke is the receiver of ConvertTo, and hub is its argument, which ConvertTo has filled in. If
// the spoke has no annotation, Restore does nothing. Restore does not change the spoke.
//
// To find fields that contradict a user's edit of the spoke, Restore converts objects without the
// annotation by the methods of S. It ignores annotations that ConvertFrom adds to the spoke, such as a
// copy of the hub. The number of conversions is bounded, see conversion.Lossless.
//
// Restore returns an error that names the object and the field if
//
//   - the annotation is invalid, see conversion.Lossless, or was recorded for another spoke or hub,
//   - an option is invalid, or
//   - spoke or hub is not a pointer to a struct that embeds metav1.ObjectMeta.
//
// The versions are compared as far as spoke and hub have an apiVersion. After an error, hub is without
// the annotation, and otherwise unchanged. Thus a caller that ignores the error drops invalid annotations,
// like conversion.DropInvalidAnnotation.
func Restore[S Convertible[H], H runtime.Object](spoke S, hub H, opts ...Option) error {
	return RestoreFunc(context.Background(), spoke, hub,
		func(_ context.Context, in S, out H) error { return in.ConvertTo(out) },
		func(_ context.Context, in H, out S) error { return out.ConvertFrom(in) }, opts...)
}

// RestoreFunc is like [Restore] for conversions that are functions, such as those of conversion.AddSpoke
// and of controller-runtime's NewSpokeConverter. When a function is called, out has the metadata of in.
func RestoreFunc[S, H runtime.Object](ctx context.Context, spoke S, hub H,
	toHub func(ctx context.Context, in S, out H) error, fromHub func(ctx context.Context, in H, out S) error, opts ...Option) error {
	from, err := viewOf(spoke)
	if err != nil {
		return err
	}
	text, ok := from.meta.Annotations[Annotation]
	if !ok {
		return nil
	}
	to, err := viewOf(hub)
	if err != nil {
		return err
	}
	to.meta.Annotations = maps.Clone(to.meta.Annotations) // may be shared with the spoke
	if delete(to.meta.Annotations, Annotation); len(to.meta.Annotations) == 0 {
		to.meta.Annotations = nil
	}
	if err := restore(ctx, from, to, text, toHub, fromHub, opts); err != nil {
		return fmt.Errorf("%s: %w", gvk.Name(cmp.Or(from.kind.Kind, from.value.Elem().Type().Name()), from.meta.Namespace, from.meta.Name), err)
	}
	return nil
}

// unpacking holds a value while a compressed annotation is read.
var unpacking = make(chan struct{}, 1)

func restore[S, H runtime.Object](ctx context.Context, spoke, hub *view, text string,
	toHub func(context.Context, S, H) error, fromHub func(context.Context, H, S) error, opts []Option) error {
	s, err := spoke.payload()
	if err != nil {
		return err
	}
	h, err := hub.payload()
	if err != nil {
		return err
	}
	keys := &keys{kind: schema.GroupVersionKind{
		Group: cmp.Or(hub.kind.Group, spoke.kind.Group), Version: hub.kind.Version, Kind: cmp.Or(hub.kind.Kind, spoke.kind.Kind),
	}, hub: hub.value.Elem().Type()}
	var mistake error // of the caller
	r := lost.Restorer{
		Spoke: spoke.kind.Version, Lists: &keys.tree, Unpacking: unpacking,
		ToHub: func(ctx context.Context, p lost.Payload) (lost.Payload, error) {
			return convert(ctx, spoke, hub, p, toHub)
		},
		ToSpoke: func(ctx context.Context, p lost.Payload) (lost.Payload, error) {
			return convert(ctx, hub, spoke, p, fromHub)
		},
		Earlier: func(version string) (lost.Hub, error) {
			if hub.kind.Version != "" && hub.kind.Version != version {
				return lost.Hub{}, fmt.Errorf("expected the hub %q", hub.kind.Version)
			}
			keys.kind.Version = version
			for _, opt := range opts {
				if mistake = opt(keys); mistake != nil {
					return lost.Hub{}, mistake
				}
			}
			return lost.Hub{Maps: keys.tree.Over(listkeys.OfType(keys.hub))}, nil
		},
	}
	restored, err := r.Restore(ctx, s.Without(Annotation), h, text)
	switch {
	case mistake != nil:
		return mistake
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
	body, err := lost.AppendBody(nil, text)
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

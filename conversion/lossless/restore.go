package lossless

import (
	"cmp"
	"context"
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
	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/lost"
)

// Annotation is the annotation in which conversion.Lossless stores the fields that a spoke cannot express.
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
// An invalid annotation, see conversion.Lossless, is a *field.Error at metadata.annotations, unless
// [DropInvalidAnnotation] is set. All other errors are mistakes in the operator: an invalid option, a
// method that fails without the annotation too, or an object that is not a pointer to a struct that embeds
// metav1.ObjectMeta. After an error, hub is without the annotation, and otherwise unchanged.
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
	kind := schema.GroupVersionKind{
		Group: cmp.Or(to.kind.Group, from.kind.Group), Version: to.kind.Version, Kind: cmp.Or(to.kind.Kind, from.kind.Kind),
	}
	var s lost.Settings
	for _, opt := range opts {
		opt(&s)
	}
	text, ok := from.meta.Annotations[Annotation]
	err := errors.Join(s.Errs...)
	if err == nil && (ok || kind.Kind != "") {
		_, err = s.ListKeys(kind)
	}
	if err == nil && !ok {
		return nil
	}
	to.meta.Annotations = maps.Clone(to.meta.Annotations) // may be shared with the spoke
	delete(to.meta.Annotations, Annotation)
	name := cmp.Or(from.kind.Kind, from.value.Elem().Type().Name())
	if err == nil {
		r := &lost.Restorer{Settings: &s, Kind: name, Namespace: from.meta.Namespace, Name: from.meta.Name, Spoke: from.kind.Version}
		err = restore(ctx, r, from, to, kind, text, toHub, fromHub)
	}
	if len(to.meta.Annotations) == 0 {
		to.meta.Annotations = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", gvk.Name(name, from.meta.Namespace, from.meta.Name), err)
	}
	return nil
}

// restore restores the hub, whose kind is given as far as it is known.
func restore[S, H runtime.Object](ctx context.Context, r *lost.Restorer, spoke, hub *view, kind schema.GroupVersionKind, text string,
	toHub func(context.Context, S, H) error, fromHub func(context.Context, H, S) error) error {
	s, errSpoke := spoke.payload()
	h, errHub := hub.payload()
	if err := errors.Join(errSpoke, errHub); err != nil {
		return err
	}
	hubType := hub.value.Elem().Type()
	r.ToHub = func(ctx context.Context, p lost.Payload) (lost.Payload, error) {
		return convert(ctx, spoke, hub, p, toHub)
	}
	r.ToSpoke = func(ctx context.Context, p lost.Payload) (lost.Payload, error) {
		return convert(ctx, hub, spoke, p, fromHub)
	}
	r.Earlier = func(version string) (lost.Hub, error) {
		if kind.Version != "" && kind.Version != version {
			return lost.Hub{}, fmt.Errorf("expected the hub %q", kind.Version)
		}
		kind.Version = version
		keys, err := r.ListKeys(kind)
		return lost.Hub{Lists: keys, Maps: sync.OnceValue(func() *listmapkeys.Tree { return keys.Over(listmapkeys.OfType(hubType)) })}, err
	}
	r.Check = func(ctx context.Context, p lost.Payload) error { return hub.check(ctx, p, kind, r.Verify) }
	restored, err := r.Restore(ctx, s.Without(Annotation), h, text)
	if err != nil {
		return err
	}
	made, err := hub.decode(hub, restored)
	if err != nil {
		return err
	}
	managed := hub.meta.ManagedFields
	hub.value.Elem().Set(made.value.Elem())
	hub.meta.ManagedFields = managed
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
	var arena codec.Arena
	text, err := arena.Encode(v.object)
	if err != nil {
		return lost.Payload{}, err
	}
	body, err := codec.AppendBody(nil, text)
	return lost.Payload{Body: body, Labels: v.meta.Labels, Annotations: v.meta.Annotations}, err
}

// decode returns a new object of the type of v with a payload. Its other metadata is that of an object.
func (v *view) decode(of *view, p lost.Payload) (*view, error) {
	obj := reflect.New(v.value.Elem().Type()).Interface().(runtime.Object) // as v is
	if err := codec.Decode(p.Body, obj); err != nil {
		return nil, err
	}
	made, err := viewOf(obj)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(v.kind)
	of.meta.DeepCopyInto(made.meta)
	made.meta.Labels, made.meta.Annotations, made.meta.ManagedFields = maps.Clone(p.Labels), maps.Clone(p.Annotations), nil
	return made, nil
}

// check returns an error if a restored hub is not valid: if its version is unknown, it must not have
// fields that its Go type lacks. The kind is the one for which the annotation was made.
func (v *view) check(ctx context.Context, p lost.Payload, kind schema.GroupVersionKind, verify func(context.Context, []byte) error) error {
	if v.kind.Version == "" {
		if unknown, _ := kjson.UnmarshalStrict(p.Body, reflect.New(v.value.Elem().Type()).Interface()); len(unknown) > 0 {
			return fmt.Errorf("recorded for the hub %q: %w", kind.Version, errors.Join(unknown...))
		}
	}
	if verify == nil {
		return nil
	}
	made, err := v.decode(v, p)
	if err != nil {
		return err
	}
	made.object.GetObjectKind().SetGroupVersionKind(kind)
	text, err := new(codec.Arena).Encode(made.object)
	if err != nil {
		return err
	}
	return verify(ctx, text)
}

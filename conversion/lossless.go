package conversion

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/conversion/lossless"
	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/jsontype"
	"github.com/crdkit/crdkit/internal/listmapkeys"
	"github.com/crdkit/crdkit/internal/lost"
	"github.com/crdkit/crdkit/internal/merge"
)

// Lossless makes a spoke preserve the fields of the hub that it cannot express. The
// conversions between the spoke and its hub must have been added before. Afterwards,
// converting an object hub → spoke → hub returns the same hub object. Edits that a user
// makes to the spoke always win. Package lossless has the options.
//
// # What is stored
//
// On the way to the spoke, the spoke is also converted back to the hub, and the result is
// compared with the original hub object. The differences are stored in one annotation of
// the spoke ([lossless.Annotation]), as paths and values. If there are no differences, there
// is no annotation. If the spoke cannot be converted back, the conversion to the spoke
// fails.
//
// An empty object or list counts as absent if the hub's Go type does not tell the two apart.
// For example, a struct with the tag omitzero encodes {} as nothing, and a struct
// without it encodes nothing as {}.
//
// If your conversion functions default a hub-only field, a field with the default value is not
// stored, because converting back restores it. Such a field changes if you change the default.
//
// # What is restored
//
// On the way to the hub, the annotation is removed, and its differences are applied to the
// converted object. These differences are left out:
//
//   - a difference that contradicts a user's edit: with it, the hub object would not convert
//     back to the spoke as edited
//   - a difference in a list element that the user removed
//   - a difference in a nested object that the user removed: if the user removes spec.image,
//     its hub-only digest goes too, because a digest without an image may be invalid
//
// All other differences are restored, because users cannot remove fields that they cannot see.
// For example, entries of a map and elements of a list that the spoke does not show are
// restored even if the user removed all others. Whether an object is a map is decided by the
// hub's Go type, and by the definition of [lossless.ListMapKeys]. The hub-only fields of spec, and of
// other fields at the top, are always restored. If the spoke has not been edited, all differences
// are restored, or the conversion fails.
//
// A difference can contradict an edit of another field. Lossless finds such differences by
// trial conversions, and starts at the paths nearest to the edit. The trials end when they have
// converted 4 MiB plus 32 times the size of the hub object. The trials test differences in
// groups. Groups that are undecided when the trials end are left out.
//
// # List elements
//
// List elements are matched by their keys in the CRD, see [lossless.ListMapKeys]. Without keys, matching
// is heuristic: give keys to all lists in which hidden fields matter. If two elements are equally
// likely, neither is matched, and their differences are left out.
//
// To match the elements of a list without keys, the annotation also stores the elements
// that the spoke showed. If they do not fit, it stores their hashes. With hashes, an element
// that the user edited counts as a new element.
//
// # Size
//
// The API server refuses a converted object whose annotations take more than 256 KiB in all
// (apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB). Differences of more than 128
// KiB, or that do not fit beside the other annotations, are therefore stored compressed with
// gzip: up to 1.5 MiB with 131,072 JSON values. About 190 KB of incompressible data fit.
//
// If the differences still do not fit, the conversion to the spoke returns a [field.Error].
// One such object makes every list and watch of the spoke fail. To prevent users from
// creating it, limit the hub-only fields in the schema. Or register an admission function of the
// spoke, with the option ConvertWith: package admission then converts each hub object that is
// written, and denies the write.
//
// # Manifests and the storage version
//
// If a client replaces the spoke by an object without the annotation, the hub-only fields
// are removed. If a manifest contains the annotation, its differences are restored each
// time the manifest is applied. If a user writes the annotation to the hub, it is dropped
// on the way to the spoke.
//
// If the spoke is the storage version, the API server does not convert an update of the
// spoke, and the annotation is not updated. If a user then replaces a list element by a new
// element with the same key, the new element gets the hub-only fields of the old one. To
// prevent this, make the hub the storage version.
//
// # Later releases
//
// An annotation remains valid if a conversion gains, changes or drops a default, and if
// list-map keys change. It also remains valid if another version becomes the hub, as long
// as the registry still converts the earlier hub version.
//
// # Invalid annotations
//
// Every client can write the annotation. An annotation is invalid if it
//
//   - cannot be parsed, or is too large,
//   - was made for another spoke, or for a hub version that the registry does not convert,
//   - would change the spoke even though the user has not edited it,
//   - results in an object that cannot be converted to the spoke, or
//   - is rejected by [lossless.VerifyRestored].
//
// Then the conversion returns a [field.Error] at metadata.annotations, unless
// [lossless.DropInvalidAnnotation] is set. With the option ConvertWith, handlers of package admission
// deny writes of an invalid annotation. Your admission functions decide whether an update may
// remove the annotation, as for any other update.
//
// # Security
//
// A user who can write the spoke can set hub-only fields through the annotation, including
// status. The API server does not validate converted objects, neither by their schema nor
// by validation rules. Set [lossless.VerifyRestored] to validate the restored objects. The
// annotation cannot change a field that the spoke shows.
//
// # Cost
//
// Converting to the spoke runs two conversions instead of one. Converting to the hub runs four if
// there is an annotation, and a few more if differences contradict an edit. The time is linear in
// the size of the object.
//
// # Errors
//
// Lossless returns an error that joins all mistakes:
//
//   - The registry has no conversions between the version and a hub, or the version is the
//     hub.
//   - The spoke is lossless already.
//   - An option is invalid.
func Lossless(r *Registry, spoke schema.GroupVersionKind, opts ...lossless.Option) error {
	l := &losslessSpoke{kind: spoke.GroupKind(), spoke: spoke.Version}
	errorf := func(format string, args ...any) { l.Errs = append(l.Errs, fmt.Errorf(format, args...)) }
	k := r.graph[l.kind]
	var steps *spokeSteps
	if k != nil {
		l.hub, steps = k.hub, k.spokes[spoke.Version]
	}
	switch {
	case k != nil && k.hub == spoke.Version:
		errorf("%s is the hub, expected a spoke: pass the function to the hub first", spoke.Version)
	case steps == nil:
		errorf("the registry has no conversion to it from a hub: call AddSpoke first")
	case steps.toHub.plain != nil:
		errorf("the spoke is lossless already")
	}
	l.hubType = r.scheme.AllKnownTypes()[l.kind.WithVersion(l.hub)]
	for _, opt := range opts {
		opt(&l.Settings)
	}
	lists, err := l.ListKeys(l.kind.WithVersion(l.hub))
	l.lists, l.maps = lists, lists.Over(listmapkeys.OfType(l.hubType))
	if err := errors.Join(append(l.Errs, err)...); err != nil {
		return fmt.Errorf("conversion: %s cannot be lossless: %w", spoke, err)
	}
	l.there, l.back = new(*steps.fromHub), new(*steps.toHub)
	steps.fromHub.plain, steps.fromHub.transform = l.there, l.toSpoke
	steps.toHub.plain, steps.toHub.transform = l.back, l.toHub
	return nil
}

// losslessSpoke is a lossless spoke with its settings.
type losslessSpoke struct {
	lost.Settings
	lists       *listmapkeys.Tree // the keys of the lists of the hub
	maps        *listmapkeys.Tree // which objects of the hub have fields of any name
	kind        schema.GroupKind
	spoke, hub  string       // versions
	hubType     reflect.Type // nil if the hub is unstructured
	there, back *step        // without Lossless
}

// toSpoke converts a hub payload to the spoke, and stores the differences in the
// annotation.
func (l *losslessSpoke) toSpoke(ctx context.Context, c *converter, hub payload) (payload, error) {
	hub = hub.Clone().Without(lossless.Annotation)
	spoke, err := run(ctx, c, hub, l.there)
	if err != nil {
		return payload{}, err
	}
	spoke = spoke.Without(lossless.Annotation)
	back, err := run(ctx, c, spoke, l.back)
	if err != nil {
		return payload{}, fmt.Errorf("converting back to %s, to find the fields that would be lost: %w", l.hub, err)
	}
	sameMetadata, b, h := back.SameMetadata(hub), back.Body, hub.Body
	if !sameMetadata {
		if b, err = back.Document(); err != nil {
			return payload{}, err
		}
		if h, err = hub.Document(); err != nil {
			return payload{}, err
		}
	}
	changes, err := merge.Diff(b, h, l.lists)
	if err != nil || len(changes) == 0 || sameMetadata && l.omits(c, h, b) {
		return spoke, err
	}
	read, err := spoke.Without(l.Copies...).Read()
	if err != nil {
		return payload{}, err
	}
	if spoke.Annotations == nil {
		spoke.Annotations = map[string]string{}
	}
	return spoke, lost.Annotate(spoke.Annotations, l.spoke, l.hub, read.Hash(), changes)
}

// omits reports whether two bodies of hub objects differ only in empty objects and lists that
// the hub's Go type does not tell from nothing: it encodes the first body as the second.
func (l *losslessSpoke) omits(c *converter, hub, back []byte) bool {
	if l.hubType == nil || jsontype.DecodesItself(l.hubType) {
		return false
	}
	h, errH := merge.Read(hub)
	b, errB := merge.Read(back)
	if errH != nil || errB != nil || !h.EqualButEmpty(b) {
		return false
	}
	obj := reflect.New(l.hubType).Interface()
	if unknown, err := kjson.UnmarshalStrict(hub, obj); err != nil || len(unknown) > 0 {
		return false
	}
	text, err := c.arena.Encode(obj)
	if err != nil {
		return false
	}
	encoded, err := codec.AppendBody(nil, text)
	return err == nil && merge.Equal(encoded, back)
}

// toHub converts a spoke payload to the hub, and restores the differences.
func (l *losslessSpoke) toHub(ctx context.Context, c *converter, spoke payload) (payload, error) {
	text, noted := spoke.Annotations[lossless.Annotation]
	spoke = spoke.Clone().Without(lossless.Annotation)
	hub, err := run(ctx, c, spoke, l.back)
	if err != nil || !noted {
		return hub, err
	}
	along := func(steps ...*step) lost.Convert {
		return func(ctx context.Context, p payload) (payload, error) { return run(ctx, c, p, steps...) }
	}
	restorer := lost.Restorer{
		Settings: &l.Settings, Kind: c.object.kind, Namespace: c.object.meta.Namespace, Name: c.object.meta.Name,
		Spoke: l.spoke, ToHub: along(l.back), ToSpoke: along(l.there),
		Earlier: func(version string) (lost.Hub, error) {
			if version == l.hub {
				return lost.Hub{Lists: l.lists, Maps: func() *listmapkeys.Tree { return l.maps }}, nil
			}
			now, then := l.kind.WithVersion(l.hub), l.kind.WithVersion(version)
			to, err := c.registry.graph.route(now, then.GroupVersion())
			if err != nil {
				return lost.Hub{}, err
			}
			from, _ := c.registry.graph.route(then, now.GroupVersion()) // there is a way back
			maps := sync.OnceValue(func() *listmapkeys.Tree { return listmapkeys.OfType(c.registry.scheme.AllKnownTypes()[then]) })
			return lost.Hub{From: along(plain(from.steps)...), To: along(plain(to.steps)...), Lists: l.lists, Maps: maps}, nil
		},
		Check: func(ctx context.Context, hub payload) error {
			if l.Verify == nil {
				return nil
			}
			object, err := c.object.append(nil, headOf(l.back.toType), hub)
			if err != nil {
				return err
			}
			return l.Verify(ctx, object)
		},
	}
	return restorer.Restore(ctx, spoke, hub, text)
}

// run takes a payload through steps. The given and the returned payload are neither in the
// converter's buffer, nor shared with a function.
func run(ctx context.Context, c *converter, p payload, steps ...*step) (payload, error) {
	p, err := c.along(ctx, steps, p.Clone())
	return p.Clone(), err
}

// plain returns the steps without [Lossless].
func plain(steps []*step) []*step {
	steps = slices.Clone(steps)
	for i, s := range steps {
		if s.plain != nil {
			steps[i] = s.plain
		}
	}
	return steps
}

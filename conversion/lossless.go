package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"

	"github.com/crdkit/crdkit/internal/codec"
	"github.com/crdkit/crdkit/internal/listkeys"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/threeway"
)

// LosslessAnnotation is where [Lossless] keeps what a spoke cannot express.
const LosslessAnnotation = "conversion.crdkit.github.io/lost"

// Lossless makes the conversions between a spoke and its hub, which have been added
// before, lose nothing: hub → spoke → hub gives the hub object back, and what a user
// edits in the spoke in between always wins.
//
// On the way to the spoke, the object is converted back at once. The differences
// between the hub object and what has come back are what would be lost; they, and no
// more, are kept in one annotation of the spoke, as paths and values. If nothing would
// be lost, there is no annotation. The way back must not fail for what the way to the
// spoke has made: then the object cannot be read as the spoke.
//
// On the way to the hub, the annotation is removed, and its differences are applied to
// what the conversion has made of the spoke. A difference that would show in the spoke is
// against the user's edit, and left out; so is one in a list element that the user
// removed. Everything else stays: what a user could not see, the user did not remove, also
// when all that the spoke showed of a list or an object is gone. List elements are
// identified by their keys, see [ListMapKeys]; without keys, an element is the one with which
// it shares the most, and where two are equally likely, neither gets what the other had. For
// that, the annotation has what the spoke showed of such a list, or hashes of its elements if
// it would be too large: then an element that the user edited is a new one. A client that
// replaces the spoke by an object without the annotation replaces all of it; a manifest with
// the annotation brings its differences back each time it is applied.
//
// An annotation that an earlier release has written stays good when a conversion gains,
// changes or drops a default, when list-map keys change, and when another version becomes
// the hub, as long as the registry converts it. If the spoke has not been edited since, each
// difference is restored, or there is an error. A value that is the conversion's own default
// is not kept: it changes with that default.
//
// If the spoke is what is stored, an update in its version does not reach the conversion,
// so the annotation stays as it was: an element that is removed and, later, created again
// under the same key gets the fields that the hub knew of the old one. To prevent that,
// make the hub the storage version.
//
// Every client may write the annotation. One that cannot be read, that is too
// large, that was made for other versions, or that makes an object which cannot be
// converted to the spoke, is an error of the conversion, a [field.Error] at
// metadata.annotations; see [DropInvalidAnnotation]. Package admission denies a write
// with it, and lets one that removes it pass.
// The annotation is as good as its writer: a user who may write the spoke can write fields
// that only the hub has, status among them, and the API server validates what it converts
// against no schema and no rule. See [VerifyRestored]. An annotation never contradicts what
// the spoke says. If a user writes it to the hub, it is dropped on the way to the spoke.
//
// It costs a second conversion on the way to the spoke, and one more on the way back if
// there is an annotation; a few more if some differences are against the user's edit. The
// time is linear in the size of the object. If more than some dozens of differences are
// against an edit elsewhere in the object, so that nothing tells which of them are, then
// others of the same fields may be left out with them.
//
// The error joins all mistakes: the version is not a spoke of a hub; it has direct
// conversions, which would bypass the hub; it is lossless already; an option is wrong.
func Lossless(r *Registry, spoke schema.GroupVersionKind, opts ...LosslessOption) error {
	l := &lossless{maxBytes: 128 << 10, kind: spoke.GroupKind(), spoke: spoke.Version}
	var there, back *step
	if k := r.kinds[spoke.GroupKind()]; k != nil && k.hub != spoke.Version {
		l.hub = k.hub
		for _, s := range k.steps {
			switch {
			case s.from.Version == k.hub && s.to.Version == spoke.Version:
				there = s
			case s.from.Version == spoke.Version && s.to.Version == k.hub:
				back = s
			case s.from.Version == spoke.Version:
				l.wrong("the spoke has a direct conversion to %s, which would bypass the hub", s.to.Version)
			}
		}
	}
	if k := r.kinds[spoke.GroupKind()]; k != nil && k.hub == spoke.Version {
		l.wrong("%s is the hub: of two functions, the first leads to the hub", spoke.Version)
	} else if there == nil {
		l.wrong("the registry has no conversion to it from a hub: call AddSpoke first")
	} else if there.plain != nil {
		l.wrong("the spoke is lossless already")
	}
	if hub, err := r.scheme.New(l.kind.WithVersion(l.hub)); err == nil {
		l.hubType = reflect.TypeOf(hub).Elem()
	}
	for _, opt := range opts {
		opt(l)
	}
	if l.maxBytes <= 0 {
		l.wrong("an annotation of at most %d bytes holds nothing", l.maxBytes)
	}
	if err := errors.Join(l.errs...); err != nil {
		return fmt.Errorf("conversion: %s cannot be lossless: %w", spoke, err)
	}
	l.there, l.back = new(*there), new(*back)
	there.plain, there.convertPayload = l.there, l.toSpoke
	back.plain, back.convertPayload = l.back, l.toHub
	return nil
}

// LosslessOption changes how [Lossless] works.
type LosslessOption func(*lossless)

// MaxAnnotationBytes limits the value of the annotation; a conversion that would need
// more fails. The default is 128 KiB: the API server takes 256 KiB for all annotations
// of an object (apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB).
func MaxAnnotationBytes(n int) LosslessOption {
	return func(l *lossless) { l.maxBytes = n }
}

// DropInvalidAnnotation drops an annotation that is not valid, and converts the object
// without it. The values that it kept are lost then, and the log says so. The
// default is an error, which loses nothing: the write is refused. But if the spoke is
// what is stored, an object with such an annotation cannot be read in any other version,
// nor can any list that it is in, until the annotation is removed from the spoke.
func DropInvalidAnnotation() LosslessOption {
	return func(l *lossless) { l.drop = true }
}

// VerifyRestored has a function called with each hub object that had an annotation, when
// it has been restored and before it is used. If the function returns an error, the
// annotation is not valid. It may, for one, validate the object against the schema of
// the hub. It may keep the text, and is called from several goroutines at a time.
func VerifyRestored(f func(ctx context.Context, hub []byte) error) LosslessOption {
	return func(l *lossless) { l.verify = f }
}

// lossless is what is needed to lose nothing between a hub and a spoke.
type lossless struct {
	maxBytes    int
	drop        bool
	verify      func(ctx context.Context, hub []byte) error
	lists       listkeys.Tree
	kind        schema.GroupKind
	spoke, hub  string       // versions
	hubType     reflect.Type // nil if the hub is unstructured
	there, back *step        // as they would be without this
	errs        []error
}

func (l *lossless) wrong(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(format, args...))
}

// note is the value of the annotation.
type note struct {
	Spoke string          `json:"spoke"`
	Hub   string          `json:"hub"`
	Of    string          `json:"of"` // a hash of the spoke
	Lost  json.RawMessage `json:"lost"`
}

// toSpoke converts a hub payload to the spoke, and notes what is lost.
func (l *lossless) toSpoke(ctx context.Context, c *converter, hub payload) (payload, error) {
	hub = hub.clone().without(LosslessAnnotation)
	spoke, err := run(ctx, c, hub, l.there)
	if err != nil {
		return payload{}, err
	}
	spoke = spoke.without(LosslessAnnotation)
	back, err := run(ctx, c, spoke, l.back)
	if err != nil {
		return payload{}, fmt.Errorf("converting back to %s to see what is lost: %w", l.hub, err)
	}
	withMetadata := !back.sameMetadata(hub)
	b, err := back.document(withMetadata)
	if err != nil {
		return payload{}, err
	}
	h, err := hub.document(withMetadata)
	if err != nil {
		return payload{}, err
	}
	changes, err := threeway.Diff(b, h, &l.lists)
	if err != nil || len(changes) == 0 {
		return spoke, err
	}
	read, err := spoke.read()
	if err != nil {
		return payload{}, err
	}
	text := l.note(read.Hash(), changes)
	if len(text) > l.maxBytes {
		text = l.note(read.Hash(), changes.Compact())
	}
	if len(text) > l.maxBytes {
		return payload{}, fmt.Errorf("%s: %d bytes for the fields that %s cannot express, want at most %d", l.field(), len(text), l.spoke, l.maxBytes)
	}
	if spoke.annotations == nil {
		spoke.annotations = map[string]string{}
	}
	spoke.annotations[LosslessAnnotation] = string(text)
	return spoke, nil
}

// note returns the value of the annotation.
func (l *lossless) note(of string, changes threeway.Changes) []byte {
	text := rawjson.AppendQuote([]byte(`{"spoke":`), l.spoke)
	text = rawjson.AppendQuote(append(text, `,"hub":`...), l.hub)
	text = rawjson.AppendQuote(append(text, `,"of":`...), of)
	return append(append(append(text, `,"lost":`...), changes.Encode()...), '}')
}

// toHub converts a spoke payload to the hub, and restores what was lost.
func (l *lossless) toHub(ctx context.Context, c *converter, spoke payload) (payload, error) {
	text, noted := spoke.annotations[LosslessAnnotation]
	spoke = spoke.clone().without(LosslessAnnotation)
	hub, err := run(ctx, c, spoke, l.back)
	if err != nil || !noted {
		return hub, err
	}
	restored, err := l.restore(ctx, c, spoke, hub, text)
	if err == nil {
		return restored, nil
	}
	if ctx.Err() != nil { // then the annotation may be valid
		return payload{}, fmt.Errorf("%s: %w", l.field(), err)
	}
	if l.drop {
		klog.FromContext(ctx).Info("Dropped what a spoke cannot express", "kind", c.object.kind,
			"object", klog.KRef(c.object.meta.Namespace, c.object.meta.Name), "reason", fmt.Sprintf("%s: %v", l.field(), err))
		return hub, nil
	}
	return payload{}, field.Invalid(l.field(), field.OmitValueType{}, err.Error()+": remove it if the rest of the object is what you want")
}

func (l *lossless) field() *field.Path {
	return field.NewPath("metadata", "annotations").Key(LosslessAnnotation)
}

// restore returns the hub payload, which the spoke has become, with what the note says.
func (l *lossless) restore(ctx context.Context, c *converter, spoke, hub payload, text string) (payload, error) {
	if len(text) > l.maxBytes {
		return payload{}, fmt.Errorf("%d bytes, expected at most %d", len(text), l.maxBytes)
	}
	var n note
	strict, err := kjson.UnmarshalStrict([]byte(text), &n)
	if err := errors.Join(append(strict, err)...); err != nil {
		return payload{}, err
	}
	if n.Spoke != l.spoke || n.Hub == l.spoke {
		return payload{}, fmt.Errorf("made for version %q of the hub %q", n.Spoke, n.Hub)
	}
	changes, err := threeway.Parse(n.Lost)
	if err != nil {
		return payload{}, err
	}
	written, err := spoke.read()
	if err != nil {
		return payload{}, err
	}
	m := merge{lossless: l, converter: c, work: 4<<20 + 32*len(hub.body), hub: hub, written: written, unedited: written.Hash() == n.Of}
	// The note may have been made for an earlier hub.
	now, then := l.kind.WithVersion(l.hub), l.kind.WithVersion(n.Hub)
	toThen, err := c.registry.route(now, then.GroupVersion())
	if err != nil {
		return payload{}, fmt.Errorf("made for the hub %q: %w", n.Hub, err)
	}
	fromThen, err := c.registry.route(then, now.GroupVersion())
	if err != nil {
		return payload{}, fmt.Errorf("made for the hub %q: %w", n.Hub, err)
	}
	if m.base, err = run(ctx, c, hub, plain(toThen.steps)...); err != nil {
		return payload{}, err
	}
	m.back = plain(fromThen.steps)
	restored, err := m.restore(ctx, changes)
	if err != nil || l.verify == nil {
		return restored, err
	}
	object, err := c.object.append(nil, headOf(l.back.to), restored)
	if err != nil {
		return payload{}, err
	}
	return restored, l.verify(ctx, object)
}

// run takes a payload through steps. Neither what it is given nor what it returns is in the
// converter's buffer, or in the hands of a function.
func run(ctx context.Context, c *converter, p payload, steps ...*step) (payload, error) {
	p, err := c.convertAlong(ctx, steps, p.clone())
	return p.clone(), err
}

// plain returns steps as they were before they became lossless.
func plain(steps []*step) []*step {
	steps = slices.Clone(steps)
	for i, s := range steps {
		if s.plain != nil {
			steps[i] = s.plain
		}
	}
	return steps
}

func (p payload) clone() payload {
	return payload{bytes.Clone(p.body), maps.Clone(p.labels), maps.Clone(p.annotations)}
}

// without returns the payload without an annotation.
func (p payload) without(key string) payload {
	if _, ok := p.annotations[key]; ok {
		p.annotations = maps.Clone(p.annotations)
		delete(p.annotations, key)
	}
	return p
}

func (p payload) sameMetadata(other payload) bool {
	return maps.Equal(p.labels, other.labels) && maps.Equal(p.annotations, other.annotations)
}

// document returns the payload as one JSON object.
func (p payload) document(withMetadata bool) ([]byte, error) {
	if !withMetadata {
		return p.body, nil
	}
	metadata, err := json.Marshal(metadataOf{p.labels, p.annotations})
	if err != nil {
		return nil, err
	}
	return rawjson.Set(p.body, "metadata", metadata)
}

// payloadOf is the reverse.
func payloadOf(document []byte) (payload, error) {
	body, metadata := []byte{'{'}, metadataOf{}
	for m, err := range rawjson.Members(document) {
		switch {
		case err != nil:
			return payload{}, err
		case string(m.Name) != "metadata":
			body = appendMember(body, m.Text)
		default:
			if err := codec.Decode(m.Value, &metadata); err != nil {
				return payload{}, err
			}
		}
	}
	return payload{append(body, '}'), metadata.Labels, metadata.Annotations}, nil
}

type metadataOf struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// read reads the payload as one object.
func (p payload) read() (threeway.Object, error) {
	document, err := p.document(true)
	if err != nil {
		return threeway.Object{}, err
	}
	return threeway.Read(document)
}

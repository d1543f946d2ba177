package conversion

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/conversion/internal/lost"
	"github.com/crdkit/crdkit/internal/rawjson"
)

// DefaultAnnotation is where [Lossless] keeps what a spoke cannot express.
const DefaultAnnotation = "conversion.crdkit.github.io/lost"

// Lossless has the conversions between a spoke and its hub, which have been added
// before, lose nothing: hub → spoke → hub gives the hub object back, and what a user
// edits in the spoke in between always wins.
//
// On the way to the spoke, the object is converted back at once. The differences
// between the hub object and what has come back are what would be lost; they, and no
// more, are kept in one annotation of the spoke, as paths and values. If nothing would
// be lost, there is no annotation.
//
// On the way to the hub, the annotation is taken away, and what it says is merged into
// what the conversion has made of the spoke. Each difference knows what the spoke was
// like, by a hash: one that is about something the user has changed or removed since
// then is void. List elements are told by their keys, see [ListMapKeys]; without keys,
// by their content, and then an element that the user has edited is a new one. Where a
// difference would be visible in the spoke, it is against the user's edit, and void.
//
// Nobody is prevented from writing the annotation. One that cannot be read, that is too
// large, that was made for other versions, or that makes an object which cannot be
// converted to the spoke, is an error of the conversion; see [DropInvalid]. An author who
// wants to know that what it says is valid checks it, see [Verify]. If a user writes the
// annotation to the hub, it is dropped on the way to the spoke.
//
// When another version becomes the hub, annotations that were made for the old one are
// still good, as long as the registry converts it.
//
// It costs a second conversion on the way to the spoke, and two more on the way back if
// there is an annotation.
//
// These are faults, and all of them are joined: a version that is no spoke of a hub; one
// that has direct conversions, which would bypass the hub; one that is lossless already;
// and what the options say.
func Lossless(r *Registry, spoke schema.GroupVersionKind, opts ...LosslessOption) error {
	l := &lossless{key: DefaultAnnotation, maxBytes: 128 << 10, group: spoke.Group, kind: spoke.Kind, spoke: spoke.Version}
	var there, back *step
	k := r.kinds[spoke.GroupKind()]
	if k != nil && k.hub != "" {
		l.hub = k.hub
		for _, s := range k.steps {
			switch {
			case s.from.Version == k.hub && s.to.Version == spoke.Version:
				there = s
			case s.from.Version == spoke.Version && s.to.Version == k.hub:
				back = s
			case s.from.Version == spoke.Version:
				l.fault("it has a direct conversion to %s, which would bypass the hub", s.to.Version)
			}
		}
	}
	if there == nil {
		l.fault("it is no spoke of a hub in the registry: add its conversions before")
	} else if there.lossless != nil {
		l.fault("it is lossless already")
	}
	for _, opt := range opts {
		opt(l)
	}
	for _, wrong := range validation.IsQualifiedName(l.key) {
		l.fault("the annotation %q: %s", l.key, wrong)
	}
	if l.maxBytes <= 0 {
		l.fault("an annotation of at most %d bytes holds nothing", l.maxBytes)
	}
	if err := errors.Join(l.faults...); err != nil {
		return fmt.Errorf("conversion: %s cannot be lossless: %w", spoke, err)
	}
	l.there, l.back = *there, *back // as they are without this
	there.lossless, back.lossless = l.toSpoke, l.toHub
	return nil
}

// LosslessOption changes how [Lossless] works.
type LosslessOption func(*lossless)

// Annotation is the key of the annotation, instead of [DefaultAnnotation]. It is a fault
// if it is no key of an annotation.
func Annotation(key string) LosslessOption {
	return func(l *lossless) { l.key = key }
}

// MaxAnnotationBytes limits the value of the annotation; a conversion that would need
// more fails. The default is 128 KiB: the API server takes 256 KiB for all annotations
// of an object (apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB).
func MaxAnnotationBytes(n int) LosslessOption {
	return func(l *lossless) { l.maxBytes = n }
}

// DropInvalid drops an annotation that is not valid, and converts the object without it.
// What it kept is lost then, and the logger of the context says so. The default is an
// error, which loses nothing: the write is refused. But if the spoke is what is stored,
// an object with such an annotation cannot be read in any other version, nor can any
// list that it is in, until somebody removes the annotation from the spoke.
func DropInvalid() LosslessOption {
	return func(l *lossless) { l.drop = true }
}

// Verify has a function called with each hub object that something was restored to. If it
// returns an error, the annotation is not valid. It may, for one, validate the object
// against the schema of the hub: the API server does not validate what it converts to
// the stored version.
func Verify(f func(ctx context.Context, hub []byte) error) LosslessOption {
	return func(l *lossless) { l.verify = f }
}

// lossless is what is needed to lose nothing between a hub and a spoke.
type lossless struct {
	key         string
	maxBytes    int
	drop        bool
	verify      func(ctx context.Context, hub []byte) error
	lists       listKeys
	group, kind string
	spoke, hub  string // versions
	there, back step
	faults      []error
}

func (l *lossless) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

// note is the value of the annotation.
type note struct {
	Spoke string          `json:"spoke"`
	Hub   string          `json:"hub"`
	Lost  json.RawMessage `json:"lost"`
}

// toSpoke converts hub parts to the spoke, and notes what is lost.
func (l *lossless) toSpoke(ctx context.Context, w *worker, hub parts) (parts, error) {
	hub = hub.without(l.key)
	spoke, err := l.run(ctx, w, &l.there, hub)
	if err != nil {
		return parts{}, err
	}
	spoke = spoke.without(l.key)
	back, err := l.run(ctx, w, &l.back, spoke)
	if err != nil {
		return parts{}, fmt.Errorf("to see what is lost, it is converted back to %s: %w", l.hub, err)
	}
	withMeta := !back.sameMetadata(hub)
	b, err := back.document(withMeta)
	if err != nil {
		return parts{}, err
	}
	h, err := hub.document(withMeta)
	if err != nil {
		return parts{}, err
	}
	changes, err := lost.Diff(b, h, l.lists.at)
	if err != nil || len(changes) == 0 {
		return spoke, err
	}
	text, err := json.Marshal(note{l.spoke, l.hub, changes.Encode()})
	if err != nil {
		return parts{}, err
	}
	if len(text) > l.maxBytes {
		return parts{}, fmt.Errorf("what %s cannot express takes %d bytes in %s, which holds %d", l.spoke, len(text), l.field(), l.maxBytes)
	}
	if spoke.annotations == nil {
		spoke.annotations = map[string]string{}
	}
	spoke.annotations[l.key] = string(text)
	return spoke, nil
}

// toHub converts spoke parts to the hub, and restores what was lost.
func (l *lossless) toHub(ctx context.Context, w *worker, spoke parts) (parts, error) {
	text, noted := spoke.annotations[l.key]
	spoke = spoke.without(l.key)
	hub, err := l.run(ctx, w, &l.back, spoke)
	if err != nil || !noted {
		return hub, err
	}
	restored, err := l.restore(ctx, w, hub, text)
	if err == nil {
		return restored, nil
	}
	err = fmt.Errorf("%s is not valid: %w", l.field(), err)
	if ctx.Err() == nil && l.drop {
		klog.FromContext(ctx).Info("Dropped what a spoke cannot express", "kind", w.object.kind,
			"object", klog.KRef(w.object.meta.Namespace, w.object.meta.Name), "reason", err.Error())
		return hub, nil
	}
	return parts{}, fmt.Errorf("%w: remove it if the rest of the object is what you want", err)
}

func (l *lossless) field() *field.Path { return field.NewPath("metadata", "annotations").Key(l.key) }

// restore returns the hub parts with what the note says.
func (l *lossless) restore(ctx context.Context, w *worker, hub parts, text string) (parts, error) {
	if len(text) > l.maxBytes {
		return parts{}, fmt.Errorf("it has %d bytes, and may have %d", len(text), l.maxBytes)
	}
	var n note
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		return parts{}, err
	}
	if n.Spoke != l.spoke {
		return parts{}, fmt.Errorf("it was made for version %q", n.Spoke)
	}
	changes, err := lost.Parse(n.Lost)
	if err != nil {
		return parts{}, err
	}
	// It may have been made for a hub of former times.
	gk := w.object.gv.WithKind(w.object.kind).GroupKind()
	toThen, err := w.registry.route(gk.WithVersion(l.hub), schema.GroupVersion{Group: gk.Group, Version: n.Hub})
	if err != nil {
		return parts{}, fmt.Errorf("it was made for the hub %q: %w", n.Hub, err)
	}
	fromThen, err := w.registry.route(gk.WithVersion(n.Hub), schema.GroupVersion{Group: gk.Group, Version: l.hub})
	if err != nil {
		return parts{}, fmt.Errorf("it was made for the hub %q: %w", n.Hub, err)
	}
	r := restoration{lossless: l, worker: w, hub: hub, fromThen: plain(fromThen.steps), budget: 100}
	if r.then, err = r.run(ctx, plain(toThen.steps), hub); err != nil {
		return parts{}, err
	}
	if r.spoke, err = l.run(ctx, w, &l.there, hub); err != nil {
		return parts{}, err
	}
	restored, err := r.apply(ctx, changes)
	if err != nil || l.verify == nil {
		return restored, err
	}
	object, err := w.object.append(nil, headOf(l.back.to), restored)
	if err != nil {
		return parts{}, err
	}
	return restored, l.verify(ctx, object)
}

// restoration makes changes to a hub object, as far as they do not show in the spoke.
type restoration struct {
	*lossless
	worker   *worker
	hub      parts // without any changes
	spoke    parts // what becomes of that
	then     parts // the same for a hub of former times, of which the changes speak
	fromThen []*step
	budget   int // how many tries are left to find the changes that show
}

// apply makes all changes, or those that do not show.
func (r *restoration) apply(ctx context.Context, changes lost.Changes) (parts, error) {
	best, good := r.hub, lost.Changes(nil)
	var try func(more lost.Changes) error
	try = func(more lost.Changes) error {
		if r.budget--; r.budget < 0 || len(more) == 0 {
			return nil
		}
		all := slices.Concat(good, more)
		hub, shows, err := r.attempt(ctx, all)
		switch {
		case err == nil && !shows:
			best, good = hub, all
			return nil
		case len(more) == 1:
			return err
		}
		half := len(more) / 2
		return cmp.Or(try(more[:half]), try(more[half:]))
	}
	err := try(changes)
	return best, err
}

// attempt makes some changes, and says whether they show in the spoke.
func (r *restoration) attempt(ctx context.Context, changes lost.Changes) (hub parts, shows bool, err error) {
	document, err := r.then.document(true)
	if err != nil {
		return parts{}, false, err
	}
	if document, err = changes.Apply(document, r.lists.at); err != nil {
		return parts{}, false, err
	}
	then, err := r.then.from(document)
	if err != nil {
		return parts{}, false, err
	}
	if hub, err = r.run(ctx, r.fromThen, then); err != nil {
		return parts{}, false, err
	}
	spoke, err := r.lossless.run(ctx, r.worker, &r.there, hub)
	if err != nil {
		return parts{}, false, err
	}
	same, err := spoke.equal(r.spoke)
	return hub, !same, err
}

func (r *restoration) run(ctx context.Context, steps []*step, p parts) (parts, error) {
	p, err := r.worker.run(ctx, steps, p)
	return p.clone(), err
}

// run takes parts through one step; the result is nobody else's.
func (l *lossless) run(ctx context.Context, w *worker, s *step, p parts) (parts, error) {
	p, err := w.run(ctx, []*step{s}, p)
	return p.clone(), err
}

// plain returns steps as they are without Lossless.
func plain(steps []*step) []*step {
	var all []*step
	for _, s := range steps {
		s := *s
		s.lossless = nil
		all = append(all, &s)
	}
	return all
}

func (p parts) clone() parts {
	return parts{bytes.Clone(p.body), maps.Clone(p.labels), maps.Clone(p.annotations)}
}

// without returns the parts without an annotation.
func (p parts) without(key string) parts {
	if _, ok := p.annotations[key]; ok {
		p.annotations = maps.Clone(p.annotations)
		delete(p.annotations, key)
	}
	return p
}

func (p parts) sameMetadata(other parts) bool {
	return maps.Equal(p.labels, other.labels) && maps.Equal(p.annotations, other.annotations)
}

// document returns the parts as one JSON object.
func (p parts) document(withMetadata bool) ([]byte, error) {
	if !withMetadata {
		return p.body, nil
	}
	metadata, err := json.Marshal(metadataOf{p.labels, p.annotations})
	if err != nil {
		return nil, err
	}
	return rawjson.Set(p.body, "metadata", metadata)
}

// from is the reverse. What is as it was in p keeps its memory.
func (p parts) from(document []byte) (parts, error) {
	body, err := rawjson.Set(document, "metadata", nil)
	if err != nil {
		return parts{}, err
	}
	var metadata struct {
		Metadata metadataOf `json:"metadata"`
	}
	if err := slow(document, &metadata); err != nil {
		return parts{}, err
	}
	return parts{body, metadata.Metadata.Labels, metadata.Metadata.Annotations}, nil
}

type metadataOf struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// equal says whether two objects are the same but for the order of members.
func (p parts) equal(other parts) (bool, error) {
	if !p.sameMetadata(other) {
		return false, nil
	}
	if bytes.Equal(p.body, other.body) {
		return true, nil
	}
	changes, err := lost.Diff(p.body, other.body, nil)
	return len(changes) == 0, err
}

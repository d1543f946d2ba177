package roundtrip

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/trace"
	crd "github.com/crdkit/crdkit/schema"
)

// Law is something that holds for every object if a conversion is right. Its name is the
// last part of a subtest's.
type Law string

const (
	// RoundTrip: A→B→A gives the object back. If A is an internal hub, it gives back a Go value
	// that is equal, where nil and empty are the same: a field that the hub alone has is lost
	// when the object is stored. An object that does not convert is reported
	// here, and by Partial, and not by the other laws too.
	RoundTrip Law = "round-trip"
	// Partial: an object of which any top-level members are left out, except for its
	// metadata, converts and comes back. The API server sends such objects when it
	// tracks who owns which field (apiextensions-apiserver's structured merge).
	Partial Law = "partial"
	// Edited: an object that was converted from A to B and is then edited there keeps the
	// edits: B→A→B gives it back, except for its labels and annotations. A conversion that
	// puts into an annotation what B cannot express, and takes it out again without looking
	// at what has changed since, brings old data back to life.
	Edited Law = "edited"
	// Annotations: an object that was converted from A to B still converts to A when somebody
	// has written other text, which is no JSON, into the annotations that the conversion has
	// made. Nobody is prevented from that, and one object that does not convert makes each
	// list of its kind fail. Those of [conversion.Lossless] are left alone: see
	// [conversion.DropInvalidAnnotation].
	Annotations Law = "annotations"
	// Metadata: except for labels and annotations, each member of metadata has the same
	// text after A→B. The registry sees to that: it refuses what a function has changed,
	// which is then an error for RoundTrip. Objects have each member of metadata, or not:
	// some have owners and finalizers, and some of these are being deleted.
	Metadata Law = "metadata"
	// Determinism: the same object converts to the same bytes each time.
	Determinism Law = "determinism"
	// InputUntouched: no conversion function changes the object that it is given.
	InputUntouched Law = "input-untouched"
	// Aliasing: what a conversion function makes has no memory in common with what it is
	// given, nor with what it has made before, so that later changes of one leave the other
	// alone. The registry itself copes with functions that share memory; other callers, who
	// may have their objects from an informer's cache, do not. Functions of
	// [conversion.AddSchemeFunctions] are exempt: conversion-gen makes them share memory on
	// purpose.
	Aliasing Law = "aliasing"
	// Defaulting: to default an object of A and then to convert it to B gives the same as
	// to convert it and then to default it. Defaults are those of the registry's scheme
	// ([runtime.Scheme.Default]) and of the [CRD].
	Defaulting Law = "defaulting"
	// PathIndependence: A→C→B gives the same as A→B.
	PathIndependence Law = "path-independence"
	// Acceptance: what an object that the API server accepts becomes is accepted too: it
	// is valid by the schema of the [CRD], and pruning takes nothing away from it. A Go type
	// that writes a struct which the object did not have, such as an empty spec, may break
	// it: make it a pointer, or omitzero.
	Acceptance Law = "acceptance"
	// OutsideSchema: an object that breaks one rule of the schema in the [CRD] converts and comes
	// back, or is refused with an error; no function panics. Such objects may be stored: they
	// were there before the schema became stricter (KEP-4008). It is checked on request, see
	// [With].
	OutsideSchema Law = "outside-schema"
	// Decoding: the Go type of a version can decode each object that the schema in the [CRD]
	// accepts. controller-gen writes schemas that accept more: a string for a
	// [k8s.io/apimachinery/pkg/apis/meta/v1.Duration], for example. Users who write such an
	// object get an error of decoding from each webhook, and informers stop.
	Decoding Law = "decoding"
	// Drift: the Go type of a version and its schema in the [CRD] have the same fields.
	Drift Law = "drift"
)

var allLaws = append([]Law{RoundTrip, Partial, Edited, Annotations, Metadata, Determinism, InputUntouched, Aliasing, Defaulting, PathIndependence, Acceptance, OutsideSchema, Decoding, Drift}, schemeLaws...)

// check returns how an object breaks a law; nil if it does not.
type check func(ctx context.Context, s *subject, object []byte) *failure

// lawOnPath is how a law is checked, and whether the path leads back.
type lawOnPath struct {
	law   Law
	back  bool
	check check
}

// laws are those that two versions, or one and an internal hub, are enough for.
var laws = []lawOnPath{
	{RoundTrip, true, roundTrip},
	{Partial, true, roundTrip},
	{Edited, true, edited},
	{Annotations, true, annotated},
	{Metadata, false, metadata},
	{Determinism, false, determinism},
	{InputUntouched, false, inputUntouched},
	{Aliasing, false, aliasing},
	{Defaulting, false, defaulting},
}

// subject is one law on one path: what one subtest is about.
type subject struct {
	registry *conversion.Registry
	cfg      *config
	kind     conversion.Kind
	path     []string // versions
	law      Law
	check    check
	// checkValue is the check of a law about Go values; nil for others. See [TestScheme].
	checkValue checkValue
	pool       *pool
	// start makes objects of the path's first version; via makes those of its second that
	// objects of [Edited] and [Annotations] were before.
	start, via generator
	// definition is that of the kind; nil if there is none.
	definition *crd.Definition
}

// subjects returns the subjects of a kind, those of one path together.
func subjects(reg *conversion.Registry, cfg *config, kind conversion.Kind) (all []*subject) {
	definition := cfg.definition(kind)
	add := func(law Law, check check, path ...string) {
		all = append(all, &subject{registry: reg, cfg: cfg, kind: kind, path: path, law: law, check: check, definition: definition})
	}
	for _, a := range kind.Versions {
		if definition != nil && reg.Scheme().Recognizes(kind.WithVersion(a)) {
			add(Drift, nil, a)
			if definition.Version(a).Structural() != nil {
				add(Decoding, decoding, a)
			}
		}
		if kind.Hub == runtime.APIVersionInternal {
			for _, l := range laws {
				if l.law != Defaulting && l.law != Edited && l.law != Annotations {
					add(l.law, l.check, a, kind.Hub, a)
				}
			}
			if f, ok := findHubFunctions(reg, cfg, kind, a); ok {
				add(RoundTrip, nil, kind.Hub, a, kind.Hub)
				all[len(all)-1].checkValue = throughOther(f.convert)
			}
		}
		for _, b := range kind.Versions {
			if a == b {
				continue
			}
			for _, l := range laws {
				if l.back {
					add(l.law, l.check, a, b, a)
				}
			}
			if definition != nil && cfg.with[OutsideSchema] {
				add(OutsideSchema, outside, a, b, a)
			}
			for _, l := range laws {
				if !l.back {
					add(l.law, l.check, a, b)
				}
			}
			if definition != nil {
				add(Acceptance, acceptance, a, b)
			}
			for _, c := range kind.Versions {
				if c != a && c != b {
					add(PathIndependence, pathIndependence, a, c, b)
				}
			}
		}
	}
	return all
}

// route is the path as a subtest is named.
func (s *subject) route() string { return strings.Join(s.path, "→") }

// String names a subject as its subtest is named.
func (s *subject) String() string {
	return s.kind.GroupKind.String() + "/" + s.route() + "/" + string(s.law)
}

// failure is how a law was broken: by an error, or by a difference, which is looked for
// when it is reported.
type failure struct {
	err  error
	diff func() string // -want +got
}

// along converts an object to one version after another.
func (s *subject) along(ctx context.Context, object []byte, versions ...string) ([]byte, error) {
	for _, v := range versions {
		if v == runtime.APIVersionInternal {
			ctx = trace.ThroughHub(ctx) // on the way to the next version, which is the same
			continue
		}
		var err error
		if object, err = s.registry.Convert(ctx, object, schema.GroupVersion{Group: s.kind.Group, Version: v}); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func roundTrip(ctx context.Context, s *subject, object []byte) *failure {
	got, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	return s.same(object, got)
}

// edited differs from roundTrip in what the objects are, and in that no metadata counts. An
// object which does not even come back without the annotations of its past is that law's
// concern.
func edited(ctx context.Context, s *subject, object []byte) *failure {
	broken := withoutMetadata(ctx, s, object)
	if broken == nil {
		return nil
	}
	fresh, err := forget(object)
	if err != nil {
		return &failure{err: err}
	}
	if withoutMetadata(ctx, s, fresh) != nil {
		return nil
	}
	return broken
}

// annotated passes over an object that does not convert without its annotations either.
func annotated(ctx context.Context, s *subject, object []byte) *failure {
	_, broken := s.along(ctx, object, s.path[1])
	if broken == nil {
		return nil
	}
	fresh, err := forget(object)
	if err == nil {
		_, err = s.along(ctx, fresh, s.path[1])
	}
	if err != nil {
		return nil // see RoundTrip
	}
	return &failure{err: broken}
}

func withoutMetadata(ctx context.Context, s *subject, object []byte) *failure {
	got, err := s.along(ctx, object, s.path[1:]...)
	if err == nil {
		got, err = withMetadataOf(object, got)
	}
	if err != nil {
		return &failure{err: err}
	}
	return s.same(object, got)
}

func metadata(ctx context.Context, s *subject, object []byte) *failure {
	out, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return nil // see RoundTrip
	}
	want, err := fixedMetadata(object)
	if err != nil {
		return &failure{err: err}
	}
	got, err := fixedMetadata(out)
	if err != nil {
		return &failure{err: err}
	}
	if maps.Equal(want, got) {
		return nil
	}
	return &failure{diff: func() string { return diffValues(want, got, true) }}
}

// repeats is how often an object is converted: the two members of a small map change places
// in one of eight iterations.
const repeats = 16

// determinism converts the object from two goroutines at a time, as a webhook does: the race
// detector sees what functions share.
func determinism(ctx context.Context, s *subject, object []byte) *failure {
	var outs [repeats][]byte
	var errs [repeats]error
	var all sync.WaitGroup
	for half := range 2 {
		all.Go(func() {
			for i := half; i < repeats; i += 2 {
				outs[i], errs[i] = s.along(ctx, object, s.path[1:]...)
			}
		})
	}
	all.Wait()
	if errs[0] != nil {
		return nil // see RoundTrip
	}
	for i, out := range outs {
		if errs[i] != nil {
			return &failure{err: fmt.Errorf("the same object converts, and at another time does not: %w", errs[i])}
		}
		if bytes.Equal(outs[0], out) {
			continue
		}
		if f := compare(outs[0], out); f != nil {
			return f
		}
		return &failure{diff: func() string { return diffTexts(string(outs[0]), string(out)) }} // the order of members
	}
	return nil
}

// watched converts an object, and looks at each call of a conversion function with look,
// which is called before the function and returns what is called after it.
func (s *subject) watched(ctx context.Context, object []byte, look func(c trace.Call) func() *failure) (broken *failure) {
	ctx = trace.With(ctx, func(c trace.Call) func() {
		after := look(c)
		return func() {
			if broken == nil {
				broken = after()
			}
		}
	})
	if _, err := s.along(ctx, object, s.path[1:]...); err != nil {
		return nil // see RoundTrip
	}
	return broken
}

func inputUntouched(ctx context.Context, s *subject, object []byte) *failure {
	return s.watched(ctx, object, func(c trace.Call) func() *failure {
		before := c.In.DeepCopyObject()
		return func() *failure {
			// Not reflect.DeepEqual: a Quantity may remember its text.
			if sameValue(before, c.In, true) {
				return nil
			}
			return changed(c, before)
		}
	})
}

// changed returns the failure of a function that has changed its input.
func changed(c trace.Call, before runtime.Object) *failure {
	want, err := json.Marshal(before)
	if err != nil {
		return &failure{err: err}
	}
	got, err := json.Marshal(c.In)
	if err != nil {
		return &failure{err: err}
	}
	if f := compare(want, got); f != nil {
		return f
	}
	return &failure{err: fmt.Errorf("the function from %s to %s changes its input, in a way that JSON does not show", c.From.Version, c.To.Version)}
}

// aliasing converts an object twice: what the two results have in common is of neither input.
func aliasing(ctx context.Context, s *subject, object []byte) *failure {
	var made []runtime.Object
	broken := s.watched(ctx, object, func(c trace.Call) func() *failure {
		given := blocks(c.Out) // by the registry
		return func() *failure {
			if c.Shares {
				return nil
			}
			kept := reflect.New(reflect.TypeOf(c.Out).Elem()) // the registry uses c.Out again
			kept.Elem().Set(reflect.ValueOf(c.Out).Elem())
			made = append(made, kept.Interface().(runtime.Object))
			in, out, found := shared(c.In, c.Out, given)
			if !found {
				return nil
			}
			return &failure{err: fmt.Errorf("the function from %s to %s makes an object whose %s has memory in common with %s of its input: copy it", c.From.Version, c.To.Version, out, in)}
		}
	})
	if broken != nil {
		return broken
	}
	before, next := made, 0
	return s.watched(ctx, object, func(c trace.Call) func() *failure {
		given := blocks(c.Out)
		return func() *failure {
			if c.Shares || next >= len(before) {
				return nil
			}
			_, out, found := shared(before[next], c.Out, given)
			if next++; !found {
				return nil
			}
			return &failure{err: fmt.Errorf("the function from %s to %s makes objects whose %s have memory in common, such as a slice of the package: copy it", c.From.Version, c.To.Version, out)}
		}
	})
}

func defaulting(ctx context.Context, s *subject, object []byte) *failure {
	a, b := s.path[0], s.path[1]
	late, err := s.along(ctx, object, b)
	if err != nil {
		return nil // see RoundTrip
	}
	if late, err = s.defaulted(b, late); err != nil {
		return &failure{err: err}
	}
	early, err := s.defaulted(a, object)
	if err == nil {
		early, err = s.along(ctx, early, b)
	}
	if err != nil {
		return &failure{err: err}
	}
	return s.compare(b, early, late)
}

// defaulted returns an object of a version with the defaults of that version: the API
// server's, and then those of the Go type.
func (s *subject) defaulted(version string, object []byte) ([]byte, error) {
	if s.definition != nil {
		var err error
		if object, err = withDefaults(s.definition.Version(version), object); err != nil {
			return nil, err
		}
	}
	kind, known := s.kind.WithVersion(version), s.registry.Scheme()
	if !known.Recognizes(kind) {
		return object, nil
	}
	obj, err := known.New(kind)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object, obj); err != nil {
		return nil, err
	}
	before := obj.DeepCopyObject()
	if known.Default(obj); sameValue(before, obj, true) {
		return object, nil
	}
	return json.Marshal(obj)
}

func pathIndependence(ctx context.Context, s *subject, object []byte) *failure {
	direct, err := s.along(ctx, object, s.path[2])
	if err != nil {
		return nil // see RoundTrip
	}
	around, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	return s.compare(s.path[2], direct, around)
}

package roundtrip

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/schema"
)

// Law is something that holds for every object if a conversion is right. Its name is the
// last part of a subtest's.
type Law string

const (
	// RoundTrip: A→B→A gives the object back. If A is an internal hub, it gives back a Go value
	// that is equal, where nil and empty are the same. An object that does not convert is reported
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
	// Annotations: an object that was converted from A to B still converts to A when a user
	// has written other text, which is not JSON, into the annotations that the conversion has
	// made. One object that does not convert makes each list of its kind fail. Those of
	// [conversion.Lossless] are left alone: see [conversion.DropInvalidAnnotation].
	Annotations Law = "annotations"
	// Metadata: except for labels and annotations, each member of metadata has the same
	// text after A→B. The registry sees to that: it refuses what a function has changed,
	// which is then an error for RoundTrip.
	Metadata Law = "metadata"
	// Determinism: the same object converts to the same bytes each time.
	Determinism Law = "determinism"
	// InputUntouched: no conversion function changes the object that it is given.
	InputUntouched Law = "input-untouched"
	// Aliasing: what a conversion function makes has no memory in common with what it is
	// given, nor with what it has made before. The registry itself copes with functions that share
	// memory; other callers, who may have their objects from an informer's cache, do not.
	// Functions of [conversion.AddSchemeFunctions] are exempt: conversion-gen makes them share
	// memory on purpose.
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
	// OutsideSchema: an object that breaks a rule of the schema in the [CRD] converts and comes
	// back, or is refused with an error; no function panics. Such objects may be stored: they
	// were there before the schema became stricter (KEP-4008). It is checked on request, see
	// [With].
	OutsideSchema Law = "outside-schema"
	// Total: what any release in the [History] has stored converts from the version in which it is
	// stored to each other version, and what a client reads and sends back comes back. Values are
	// those that its schema accepted, and those that ratcheting has kept since: nulls, values
	// beyond today's bounds, of other types, with duplicate keys. One object that does not convert
	// makes each list and watch of its kind fail. See [Refuse].
	Total Law = "total"
	// Decoding: the Go type of a version can decode each object that the schema in the [CRD]
	// accepts. controller-gen writes schemas that accept more: a string for a
	// [k8s.io/apimachinery/pkg/apis/meta/v1.Duration], for example. Users who write such an
	// object get an error of decoding from each webhook, and informers stop.
	Decoding Law = "decoding"
	// Drift: the Go type of a version and its schema in the [CRD] have the same fields.
	Drift Law = "drift"
)

var allLaws = append([]Law{RoundTrip, Partial, Edited, Annotations, Metadata, Determinism, InputUntouched, Aliasing, Defaulting, PathIndependence, Acceptance, OutsideSchema, Total, Decoding, Drift}, schemeLaws...)

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
	{Edited, true, fresh(withoutMetadata)},
	{Annotations, true, fresh(converts)},
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
	// definition is that of the kind, or nil.
	definition *schema.Definition
	origins    []origin // see [Total]
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
				path := []string{a, b}
				if l.back {
					path = append(path, a)
				}
				add(l.law, l.check, path...)
			}
			if definition != nil {
				add(Acceptance, acceptance, a, b)
			}
			if origins := cfg.origins(kind, a); len(origins) > 0 {
				add(Total, total, a, b, a)
				all[len(all)-1].origins = origins
			}
			if definition != nil && cfg.outside {
				add(OutsideSchema, outside, a, b, a)
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

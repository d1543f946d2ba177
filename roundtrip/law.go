package roundtrip

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/rawjson"
	"github.com/crdkit/crdkit/internal/watch"
)

// Law is something that holds for every object if a conversion is right. Its name is the
// last part of a subtest's.
type Law string

const (
	// RoundTrip: A→B→A gives the object back.
	RoundTrip Law = "round-trip"
	// Partial: an object of which any top-level members are left out, except for its
	// metadata, converts and comes back. The API server sends such objects when it
	// tracks who owns which field (apiextensions-apiserver's structured merge). What
	// comes back may have what the Go type writes in any case.
	Partial Law = "partial"
	// Metadata: except for labels and annotations, each member of metadata has the same
	// text after A→B.
	Metadata Law = "metadata"
	// Determinism: the same object converts to the same bytes each time.
	Determinism Law = "determinism"
	// InputUntouched: no conversion function changes the object that it is given.
	InputUntouched Law = "input-untouched"
	// PathIndependence: A→C→B gives the same as A→B.
	PathIndependence Law = "path-independence"
)

// lawOnPath is how a law is checked, and which path it takes from A to B.
type lawOnPath struct {
	law   Law
	path  func(a, b string) []string
	holds func(ctx context.Context, s *subject, object []byte) *failure
}

// laws are those that two versions are enough for.
var laws = []lawOnPath{
	{RoundTrip, thereAndBack, roundTrip},
	{Partial, thereAndBack, partial},
	{Metadata, there, metadata},
	{Determinism, there, determinism},
	{InputUntouched, there, inputUntouched},
}

func there(a, b string) []string        { return []string{a, b} }
func thereAndBack(a, b string) []string { return []string{a, b, a} }

// subject is one law on one path: what one subtest is about.
type subject struct {
	registry *conversion.Registry
	kind     conversion.Kind
	path     []string // versions
	law      Law
	holds    func(ctx context.Context, s *subject, object []byte) *failure
}

// subjects returns the subjects of a kind, those of one path together.
func subjects(reg *conversion.Registry, kind conversion.Kind) (all []*subject) {
	for _, a := range kind.Versions {
		for _, b := range kind.Versions {
			if a == b {
				continue
			}
			for _, l := range laws {
				all = append(all, &subject{reg, kind, l.path(a, b), l.law, l.holds})
			}
			for _, c := range kind.Versions {
				if c != a && c != b {
					all = append(all, &subject{reg, kind, []string{a, c, b}, PathIndependence, pathIndependence})
				}
			}
		}
	}
	return all
}

// route is the path as a subtest is named.
func (s *subject) route() string { return strings.Join(s.path, "→") }

// failure is how a law was broken: by an error, or by a difference.
type failure struct {
	err  error
	diff string // -want +got
}

// along converts an object to one version after another.
func (s *subject) along(ctx context.Context, object []byte, versions ...string) ([]byte, error) {
	for _, v := range versions {
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
	return compare(object, got)
}

// partial differs from roundTrip in what the objects are, and in that a Go type may write
// more than it has read: a struct without omitzero is always there. That is not the fault
// of the conversion.
func partial(ctx context.Context, s *subject, object []byte) *failure {
	got, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	asIs := compare(object, got)
	if asIs == nil {
		return nil
	}
	start := s.kind.WithVersion(s.path[0])
	if !s.registry.Scheme().Recognizes(start) {
		return asIs
	}
	written, err := rewrite(s.registry.Scheme(), start, object)
	if err != nil {
		return &failure{err: err}
	}
	return compare(written, got)
}

func metadata(ctx context.Context, s *subject, object []byte) *failure {
	out, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	want, err := fixedMetadata(object)
	if err != nil {
		return &failure{err: err}
	}
	got, err := fixedMetadata(out)
	if err != nil {
		return &failure{err: err}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return &failure{diff: diff}
	}
	return nil
}

// fixedMetadata returns the text of each member of metadata that no conversion may change.
func fixedMetadata(object []byte) (map[string]string, error) {
	texts := map[string]string{}
	for member, err := range rawjson.Members(object) {
		if err != nil {
			return nil, err
		}
		if string(member.Name) != "metadata" {
			continue
		}
		for m, err := range rawjson.Members(member.Value) {
			if err != nil {
				return nil, err
			}
			texts[string(m.Name)] = string(m.Value)
		}
	}
	delete(texts, "labels")
	delete(texts, "annotations")
	return texts, nil
}

// repeats is how often an object is converted: the two members of a small map change places
// in one of eight iterations.
const repeats = 16

func determinism(ctx context.Context, s *subject, object []byte) *failure {
	var first []byte
	for i := range repeats {
		out, err := s.along(ctx, object, s.path[1:]...)
		switch {
		case err != nil:
			return &failure{err: err}
		case i == 0:
			first = out
		case !bytes.Equal(first, out):
			if f := compare(first, out); f != nil {
				return f
			}
			return &failure{diff: cmp.Diff(string(first), string(out))} // the order of members
		}
	}
	return nil
}

func inputUntouched(ctx context.Context, s *subject, object []byte) (broken *failure) {
	ctx = watch.With(ctx, func(from, to schema.GroupVersionKind, in runtime.Object) func() {
		before := in.DeepCopyObject()
		return func() {
			// Not reflect.DeepEqual: a Quantity may remember its text.
			if broken == nil && !equality.Semantic.DeepEqualWithNilDifferentFromEmpty(before, in) {
				broken = changed(from, to, before, in)
			}
		}
	})
	if _, err := s.along(ctx, object, s.path[1:]...); err != nil {
		return &failure{err: err}
	}
	return broken
}

// changed returns the failure of a function that has changed its input.
func changed(from, to schema.GroupVersionKind, before, after runtime.Object) *failure {
	want, err := json.Marshal(before)
	if err != nil {
		return &failure{err: err}
	}
	got, err := json.Marshal(after)
	if err != nil {
		return &failure{err: err}
	}
	if f := compare(want, got); f != nil {
		return f
	}
	return &failure{err: fmt.Errorf("the function from %s to %s changes its input, in a way that JSON does not show", from.Version, to.Version)}
}

func pathIndependence(ctx context.Context, s *subject, object []byte) *failure {
	direct, err := s.along(ctx, object, s.path[2])
	if err != nil {
		return &failure{err: err}
	}
	around, err := s.along(ctx, object, s.path[1:]...)
	if err != nil {
		return &failure{err: err}
	}
	return compare(direct, around)
}

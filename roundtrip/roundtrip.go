package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/conversion"
)

// Test checks each [Law] for each kind of the registry, on each path between two of its
// versions. There is a subtest for each, named by kind, path and law, such as
// Pizza/v1alpha1→v1beta1→v1alpha1/round-trip; the kind has its group if another group has
// a kind of that name.
//
// The objects are random. They are made of the Go type of the path's first version, by
// sigs.k8s.io/randfill and the functions of [Funcs], and are then what that type writes as
// JSON. If that version has no Go type, they are made in another one, and converted. If no
// version has one, the subtest fails.
//
// Objects are equal if their JSON is: null, [], {} and absence all differ, and numbers
// are the same if their text is. The order of members does not count.
//
// A subtest fails with the smallest object that it could find, in YAML, what was wrong
// with it, and the command that does the same again.
//
// The test fails at once if [conversion.Registry.Check] finds a fault in the registry, or
// if an option or an environment variable makes no sense. A kind with one version, which
// converts to the internal version alone, is skipped.
func Test(t *testing.T, reg *conversion.Registry, opts ...Option) {
	t.Helper()
	cfg, err := newConfig(opts)
	if err := errors.Join(err, reg.Check()); err != nil {
		t.Fatal(err)
	}
	kinds := reg.Kinds()
	for _, kind := range kinds {
		t.Run(nameOf(kind, kinds), func(t *testing.T) {
			all := subjects(reg, kind)
			if len(all) == 0 {
				t.Skipf("%s has one version: there is no path to another", kind.GroupKind)
			}
			budget := cfg.budget(len(all))
			for len(all) > 0 {
				n := 1 // of one path
				for n < len(all) && all[n].route() == all[0].route() {
					n++
				}
				path := all[:n]
				all = all[n:]
				t.Run(path[0].route(), func(t *testing.T) {
					for _, s := range path {
						t.Run(string(s.law), func(t *testing.T) { s.test(t, cfg, budget) })
					}
				})
			}
		})
	}
}

// nameOf returns what a kind is called among others.
func nameOf(kind conversion.Kind, kinds []conversion.Kind) string {
	for _, other := range kinds {
		if other.Kind == kind.Kind && other.Group != kind.Group {
			return kind.GroupKind.String()
		}
	}
	return kind.Kind
}

func (s *subject) test(t *testing.T, cfg *config, b budget) {
	if reason, skip := cfg.without[s.law]; skip {
		t.Skip(reason)
	}
	found, err := s.search(t.Context(), cfg, b)
	if err != nil {
		t.Fatal(err)
	}
	if found != nil {
		t.Error(found.report(t.Name(), cfg.seed))
	}
}

// budget is how many objects one subject is checked with: at most, and at least if it
// takes longer than that.
type budget struct {
	most, least int
	time        time.Duration
}

func (c *config) budget(subjects int) budget {
	if c.iterations > 0 {
		return budget{most: c.iterations, least: c.iterations}
	}
	const least = 100
	return budget{max(5000/subjects, least), least, time.Second / time.Duration(subjects)}
}

// counterexample is an object for which a law does not hold.
type counterexample struct {
	*failure
	subject   *subject
	stream    []uint64 // of draws, from which the object was made
	object    []byte
	iteration int // of the first one
	tried     int // smaller ones
}

// search returns a small counterexample; nil if all objects are as they should be. It is
// an error if no objects can be made.
func (s *subject) search(ctx context.Context, cfg *config, b budget) (*counterexample, error) {
	// What a test does to an object on purpose is no news for the log.
	ctx = klog.NewContext(ctx, logr.Discard())
	g, err := newGenerator(s, cfg.funcs)
	if err != nil {
		return nil, err
	}
	begin, made := time.Now(), 0
	for i := 0; i < b.most && (i < b.least || time.Since(begin) < b.time); i++ {
		src := newSource(cfg.seed, s.String(), i)
		object, err := g.object(ctx, src)
		if errors.Is(err, errEndless) {
			continue
		}
		if err != nil {
			return nil, err
		}
		made++
		if broken := s.holds(ctx, s, object); broken != nil {
			first := &counterexample{broken, s, src.stream(), object, i, 0}
			return s.shrink(ctx, g, first), nil
		}
	}
	if made == 0 {
		return nil, fmt.Errorf("no %s could be made: %w", s.kind.GroupKind, errEndless)
	}
	return nil, nil
}

// shrink returns the smallest counterexample that breaks the law in the same way: by an
// error, or by a difference.
func (s *subject) shrink(ctx context.Context, g *generator, first *counterexample) *counterexample {
	passed := map[string]bool{} // many streams make the same object
	small := &shrinker{best: first, until: time.Now().Add(shrinkTime), try: func(stream []uint64) *counterexample {
		src := &source{replay: stream}
		object, err := g.object(ctx, src)
		if err != nil || passed[string(object)] {
			return nil
		}
		broken := s.holds(ctx, s, object)
		if broken == nil || (broken.err == nil) != (first.err == nil) {
			passed[string(object)] = true
			return nil
		}
		return &counterexample{broken, s, src.stream(), object, first.iteration, 0}
	}}
	best := *small.shrink()
	best.tried = small.tried
	return &best
}

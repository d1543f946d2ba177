package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/crdkit/crdkit/internal/draw"
)

// counterexample is an object for which a law does not hold.
type counterexample struct {
	*failure
	subject   *subject
	object    []byte
	iteration int // of the first one
	seed      uint64
	tried     int    // smaller ones
	stack     string // of the panic, if it is one
}

// search returns a small counterexample; nil if all objects are as they should be. It is
// an error if no objects can be made.
func (s *subject) search(ctx context.Context, b budget) (*counterexample, error) {
	g, err := newGenerator(s.registry, s.cfg, s.kind, s.path[0])
	if err != nil {
		return nil, err
	}
	quiet := silent(ctx)
	begin, made := time.Now(), 0
	for i := 0; i < b.most && (i < b.least || time.Since(begin) < b.time); i++ {
		src := draw.New(s.cfg.seed, s.String(), i)
		object, err := s.object(quiet, g, src)
		if errors.Is(err, draw.ErrEndless) {
			continue
		}
		if err != nil {
			return nil, err
		}
		made++
		if broken := s.check(quiet, s, object); broken != nil {
			c := s.shrink(ctx, g, draw.Shrinker{Tries: 3000, Time: 3 * time.Second}, src.Stream(), object, broken)
			c.iteration = i
			return c, nil
		}
	}
	if made == 0 {
		return nil, fmt.Errorf("no %s could be made: %w", s.kind.GroupKind, draw.ErrEndless)
	}
	return nil, nil
}

// silent returns a context that logs nothing: what a test does to an object on purpose is
// no news.
func silent(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.Discard())
}

// shrink returns the smallest counterexample that breaks the law in the same way as one
// that was found: by an error, or by a difference.
func (s *subject) shrink(ctx context.Context, g *generator, effort draw.Shrinker, stream []uint64, object []byte, broken *failure) *counterexample {
	quiet := silent(ctx)
	passed := map[string]bool{} // many streams make the same object
	found := func(stream []uint64, object []byte, f *failure) draw.Found[*counterexample] {
		return draw.Found[*counterexample]{Value: &counterexample{failure: f, subject: s, object: object}, Size: len(object), Stream: stream}
	}
	small, tried := draw.Shrink(effort, found(stream, object, broken), func(stream []uint64) (none draw.Found[*counterexample], ok bool) {
		src := draw.Replay(stream)
		object, err := s.object(quiet, g, src)
		if err != nil || passed[string(object)] {
			return none, false
		}
		f := s.check(quiet, s, object)
		if f == nil || (f.err == nil) != (broken.err == nil) {
			passed[string(object)] = true
			return none, false
		}
		return found(src.Stream(), object, f), true
	})
	c := small.Value
	c.seed, c.tried = s.cfg.seed, tried
	if c.err != nil {
		c.stack = stackOf(ctx, func(ctx context.Context) { s.check(ctx, s, c.object) })
	}
	return c
}

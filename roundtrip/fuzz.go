package roundtrip

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/draw"
)

// fuzzSeeds is how many objects of each version the fuzzing engine begins with.
const fuzzSeeds = 4

// Fuzz is [Test] as a fuzz target: the fuzzing engine of go test -fuzz, which is guided by
// what the code covers, makes the draws of which objects are made.
//
//	func FuzzConversion(f *testing.F) { roundtrip.Fuzz(f, reg) }
//
// The first draw chooses a kind and a version; the object that the others make is checked
// with each law on each path from there. Draws beyond the end of an input are zero, so a
// shorter input is a smaller object. The engine keeps inputs that fail under
// testdata/fuzz, as of other targets, and the report shows the smallest object that an
// input could be reduced to.
//
// Of the options, [Iterations] and [Time] do not count: -fuzztime does.
func Fuzz(f *testing.F, reg *conversion.Registry, opts ...Option) {
	f.Helper()
	cfg, err := newConfigFor(reg, opts)
	if err != nil {
		f.Fatal(err)
	}
	if !cfg.seeded {
		cfg.seed = 1 // what go test runs without -fuzz is the same each time
	}
	starts, err := startsOf(reg, cfg)
	if err != nil {
		f.Fatal(err)
	}
	for i := range starts {
		for n := range fuzzSeeds {
			src := draw.New(cfg.seed, starts[i].generator.kind.String(), n)
			if _, err := starts[i].generator.object(silent(f.Context()), src); err != nil && !errors.Is(err, draw.ErrEndless) {
				f.Fatal(err)
			}
			f.Add(bytesOf(append([]uint64{uint64(i)}, src.Stream()...)))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		stream := streamOf(input)
		which := 0
		if len(stream) > 0 {
			which, stream = int(stream[0]%uint64(len(starts))), stream[1:]
		}
		for _, s := range starts[which].subjects {
			c, err := s.try(t, starts[which].generator, stream)
			if err != nil {
				t.Fatal(err)
			}
			if c != nil {
				t.Error(c.report())
			}
		}
	})
}

// start is a version, and what is checked from there.
type start struct {
	generator *generator
	subjects  []*subject
}

func startsOf(reg *conversion.Registry, cfg *config) (starts []start, err error) {
	for _, kind := range reg.Kinds() {
		all := subjects(reg, cfg, kind)
		for _, version := range kind.Versions {
			var here start
			if here.generator, err = newGenerator(reg, cfg, kind, version); err != nil {
				return nil, err
			}
			for _, s := range all {
				if _, skip := cfg.without[s.law]; s.path[0] == version && !skip {
					here.subjects = append(here.subjects, s)
				}
			}
			starts = append(starts, here)
		}
	}
	return starts, nil
}

// try checks the object of a stream. What the engine does not make an object of is no
// error: it is what the functions of [Funcs] do not end for.
func (s *subject) try(t *testing.T, g *generator, stream []uint64) (*counterexample, error) {
	src := draw.Replay(stream)
	quiet := silent(t.Context())
	object, err := s.object(quiet, g, src)
	if errors.Is(err, draw.ErrEndless) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	broken := s.check(quiet, s, object)
	if broken == nil {
		return nil, nil
	}
	// Little time: the engine repeats a failure many times to make its input smaller.
	return s.shrink(t.Context(), g, draw.Shrinker{Tries: 3000, Time: 500 * time.Millisecond}, src.Stream(), object, broken), nil
}

// A draw takes eight bytes; the last may lack some.

func bytesOf(stream []uint64) (b []byte) {
	for _, v := range stream {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func streamOf(b []byte) (stream []uint64) {
	for len(b) > 0 {
		var v [8]byte
		b = b[copy(v[:], b):]
		stream = append(stream, binary.BigEndian.Uint64(v[:]))
	}
	return stream
}

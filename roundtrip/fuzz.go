package roundtrip

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"testing"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
)

// fuzzSeeds is the number of inputs for each law on each path with which the engine starts.
const fuzzSeeds = 2

// Fuzz checks the laws of [Test] as a fuzz target, so that go test -fuzz generates the objects. The
// flag -fuzztime limits the time or the number of objects. Fuzz skips the laws that [SkipLaw]
// names, and [Drift], which needs no objects.
//
// An input is a list of random numbers. The first number is a hash of the names of a law and a
// conversion path, such as v1→v2→v1 (see [Test]), so that stored inputs keep their meaning if laws
// or paths are added. The other numbers generate the object. Missing numbers are zero, so that a
// shorter input gives a smaller object.
//
// The fuzzing engine stores failing inputs in testdata/fuzz. The report shows the smallest failing
// object that was found from such an input.
func Fuzz(f *testing.F, reg *conversion.Registry, opts ...Option) {
	f.Helper()
	cfg, err := newConfigFor(reg, opts)
	if err != nil {
		f.Fatal(err)
	}
	if !cfg.seeded {
		cfg.seed = 1 // so that each go test without -fuzz runs the same objects
	}
	var all []*subject
	chosen := map[uint64]*subject{}
	for _, kind := range reg.Kinds() {
		for _, s := range subjects(reg, cfg, kind) {
			if _, skip := cfg.without[s.law]; skip || s.law == Drift {
				continue
			}
			all = append(all, s)
			chosen[s.hash()] = s
			for i := range fuzzSeeds {
				m, err := s.nth(silent(f.Context()), i)
				if err != nil && !errors.Is(err, errNotMade) {
					f.Fatal(err)
				}
				f.Add(bytesOf(append([]uint64{s.hash()}, m.source.Stream()...)))
			}
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		stream := streamOf(input)
		if len(stream) == 0 {
			stream = []uint64{0}
		}
		s := chosen[stream[0]]
		if s == nil {
			s = all[stream[0]%uint64(len(all))]
		}
		c, err := s.try(t, stream[1:])
		if err != nil {
			t.Fatal(err)
		}
		if c != nil {
			t.Error(c.report())
		}
	})
}

func (s *subject) hash() uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(s.String()))
	return hash.Sum64()
}

// try checks the object of a stream. A stream without an object is not an
// error: the functions of [Funcs] do not end for it.
func (s *subject) try(t *testing.T, stream []uint64) (*counterexample, error) {
	quiet := silent(t.Context())
	m, err := s.sample(quiet, choices.Of(stream))
	if errors.Is(err, errNotMade) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	broken := s.broken(quiet, m)
	if broken == nil {
		return nil, nil
	}
	// Few tries, because the engine repeats a failure many times to make its input smaller.
	return s.shrink(t.Context(), choices.Shrinker{Tries: 300, Time: reportTime}, counterexample{failure: broken, subject: s, sample: m, object: m.text()}), nil
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

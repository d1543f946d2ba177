package roundtrip

import (
	"errors"
	"hash/fnv"
	"math/rand"
	randv2 "math/rand/v2"
	"slices"
)

// source is the only source of randomness of an object. It gives what it was told to
// replay, then what is fresh, and then zeros: an object is a function of the draws that
// were made for it, and what is left when draws are taken away is a smaller object, never
// an unrelated one.
type source struct {
	replay []uint64
	fresh  func() uint64 // nil for none
	drawn  []uint64
}

var _ rand.Source64 = (*source)(nil)

const (
	// freshDraws bounds the size of an object. Of zeros, randfill makes nil and nothing
	// else: types that contain themselves come to an end.
	freshDraws = 1 << 14
	// allDraws bounds the patience with a function that waits for a value which zeros
	// never give it.
	allDraws = 1 << 17
)

// errEndless is what a source panics with when it has lost its patience.
var errEndless = errors.New("a function of roundtrip.Funcs does not end when all draws are zero")

func (s *source) Uint64() uint64 {
	var v uint64
	switch n := len(s.drawn); {
	case n < len(s.replay):
		v = s.replay[n]
	case n < freshDraws && s.fresh != nil:
		v = s.fresh()
	case n >= allDraws:
		panic(errEndless)
	}
	s.drawn = append(s.drawn, v)
	return v
}

func (s *source) Int63() int64 { return int64(s.Uint64() >> 1) }

// Seed is there for the interface: nobody but this package seeds.
func (s *source) Seed(int64) {}

// stream returns what was drawn, less the zeros at its end, which replay gives anyway.
func (s *source) stream() []uint64 {
	n := len(s.drawn)
	for n > 0 && s.drawn[n-1] == 0 {
		n--
	}
	return slices.Clip(s.drawn[:n])
}

// newSource returns the source of one object. Each subtest, known by its name, has objects
// of its own, whatever else runs.
//
// The first object is made of zeros. Of the others, some have no zeros to speak of and
// some have many: a nil pointer and a pointer to zero are rare in uniform randomness, and
// are where conversions fail.
func newSource(seed uint64, name string, i int) *source {
	if i == 0 {
		return &source{}
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	rng := randv2.New(randv2.NewPCG(seed^hash.Sum64(), uint64(i)))
	zeros := []float64{0, 0.1, 0.3, 0.5}[i%4]
	return &source{fresh: func() uint64 {
		if rng.Float64() < zeros {
			return 0
		}
		return rng.Uint64()
	}}
}

package draw

import (
	"errors"
	"hash/fnv"
	"math/rand"
	randv2 "math/rand/v2"
	"slices"
)

// Source is the only source of randomness of a value. It gives what it was told to
// replay, then what is fresh, and then zeros: a value is a function of the draws that
// were made for it, and what is left when draws are taken away is a smaller value, never
// an unrelated one. It is for [rand.New].
type Source struct {
	replay []uint64
	fresh  func() uint64 // nil for none
	least  bool          // what is fresh is zero
	drawn  []uint64
}

var _ rand.Source64 = (*Source)(nil)

const (
	// freshDraws bounds the size of a value. Of zeros, a generator makes the least there
	// is: types that contain themselves come to an end.
	freshDraws = 1 << 14
	// allDraws bounds the patience with a generator that waits for a draw which is not
	// zero.
	allDraws = 1 << 17
)

// ErrEndless is what a source panics with when it has lost its patience.
var ErrEndless = errors.New("a generator does not end when all draws are zero")

// Uint64 implements [rand.Source64].
func (s *Source) Uint64() uint64 {
	var v uint64
	switch n := len(s.drawn); {
	case n < len(s.replay):
		v = s.replay[n]
	case n < freshDraws && s.fresh != nil && !s.least:
		v = s.fresh()
	case n >= allDraws:
		panic(ErrEndless)
	}
	s.drawn = append(s.drawn, v)
	return v
}

// Least makes all draws zero that f asks for, but for those that are replayed: what f makes
// is small.
func (s *Source) Least(f func()) {
	before := s.least
	s.least = true
	defer func() { s.least = before }()
	f()
}

// Int63 implements [rand.Source].
func (s *Source) Int63() int64 { return int64(s.Uint64() >> 1) }

// Seed is there for the interface: nobody but this package seeds.
func (s *Source) Seed(int64) {}

// Stream returns what was drawn, less the zeros at its end, which a replay gives anyway.
func (s *Source) Stream() []uint64 {
	n := len(s.drawn)
	for n > 0 && s.drawn[n-1] == 0 {
		n--
	}
	return slices.Clip(s.drawn[:n])
}

// Replay returns a source that gives a stream of draws, and then zeros.
func Replay(stream []uint64) *Source { return &Source{replay: stream} }

// New returns the source of value number i. What has another name has other values.
//
// Value 0 is made of zeros. Of the others, some have no zeros to speak of and some have
// many: a nil pointer and a pointer to zero are rare in uniform randomness, and
// are where conversions fail.
func New(seed uint64, name string, i int) *Source {
	if i == 0 {
		return &Source{}
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	rng := randv2.New(randv2.NewPCG(seed^hash.Sum64(), uint64(i)))
	zeros := []float64{0, 0.1, 0.3, 0.5}[i%4]
	return &Source{fresh: func() uint64 {
		if rng.Float64() < zeros {
			return 0
		}
		return rng.Uint64()
	}}
}

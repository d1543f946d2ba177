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
	fresh func() uint64 // nil for none
	least bool          // what is fresh is zero
	drawn []uint64
	part  part // under way
}

// part is a part of a value.
type part struct {
	replay *Tree // nil for fresh draws
	drawn  *Tree
}

// Tree is the draws of a value: its own, and those of its parts. When a part is replayed, it
// gets the draws of the part with its number, however many the ones before it take.
type Tree struct {
	Own   []uint64
	Parts []*Tree
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
	p := s.part
	switch n := len(p.drawn.Own); {
	case p.replay != nil && n < len(p.replay.Own):
		v = p.replay.Own[n]
	case len(s.drawn) >= allDraws:
		panic(ErrEndless)
	case len(s.drawn) < freshDraws && s.fresh != nil && !s.least:
		v = s.fresh()
	}
	s.drawn = append(s.drawn, v)
	p.drawn.Own = append(p.drawn.Own, v)
	return v
}

// Part makes what f draws a part of the value, or of the part under way.
func (s *Source) Part(f func()) {
	outer := s.part
	defer func() { s.part = outer }()
	s.part = part{drawn: &Tree{}}
	if i := len(outer.drawn.Parts); outer.replay != nil && i < len(outer.replay.Parts) {
		s.part.replay = outer.replay.Parts[i]
	}
	outer.drawn.Parts = append(outer.drawn.Parts, s.part.drawn)
	f()
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

// Stream returns what was drawn, in that order, less the zeros at its end.
func (s *Source) Stream() []uint64 {
	n := len(s.drawn)
	for n > 0 && s.drawn[n-1] == 0 {
		n--
	}
	return slices.Clip(s.drawn[:n])
}

// Tree returns what was drawn.
func (s *Source) Tree() *Tree { return s.part.drawn }

// Replay returns a source that gives the draws of a value again, and then zeros; nil for
// zeros alone.
func Replay(t *Tree) *Source { return &Source{part: part{replay: t, drawn: &Tree{}}} }

// Of returns a source that gives a stream of draws, whatever parts there are, and then
// zeros.
func Of(stream []uint64) *Source {
	s := Replay(nil)
	s.fresh = func() uint64 {
		if len(stream) == 0 {
			return 0
		}
		v := stream[0]
		stream = stream[1:]
		return v
	}
	return s
}

// New returns the source of value number i. What has another name has other values.
//
// Value 0 is made of zeros. Of the others, some have no zeros to speak of and some have
// many: a nil pointer and a pointer to zero are rare in uniform randomness, and
// are where conversions fail.
func New(seed uint64, name string, i int) *Source {
	s := Replay(nil)
	if i == 0 {
		return s
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	rng := randv2.New(randv2.NewPCG(seed^hash.Sum64(), uint64(i)))
	zeros := []float64{0, 0.1, 0.3, 0.5}[i%4]
	s.fresh = func() uint64 {
		if rng.Float64() < zeros {
			return 0
		}
		return rng.Uint64()
	}
	return s
}

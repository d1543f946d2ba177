package choices

import (
	"errors"
	"hash/fnv"
	"math/rand"
	randv2 "math/rand/v2"
	"slices"
)

// Source is the only source of randomness of a value: it gives draws to replay, then fresh ones, and
// then zeros. A value is a function of its draws, and fewer draws make a smaller value, not an
// unrelated one. It is for [rand.New].
type Source struct {
	fresh func() uint64 // nil for none
	full  func() uint64 // as fresh, and never zero
	even  uint64        // see Even
	least bool          // fresh draws are zero
	drawn []uint64
	part  part // the current one
}

// part is a part of a value.
type part struct {
	replay *Tree // nil for fresh draws
	drawn  *Tree
}

// Tree has the draws of a value: its own, and those of its parts. A replayed part gets the draws of the
// part with its number, however many draws the parts before it take.
type Tree struct {
	Own   []uint64
	Parts []*Tree
}

var _ rand.Source64 = (*Source)(nil)

const (
	// freshDraws bounds the size of a value. The zeros after them end types that contain themselves.
	freshDraws = 1 << 14
	// allDraws bounds the draws of a generator that waits for one that is not zero.
	allDraws = 1 << 17
)

// ErrEndless is the value of the panic after too many draws.
var ErrEndless = errors.New("a generator does not end when all draws are zero")

// Uint64 implements [rand.Source64].
func (s *Source) Uint64() uint64 { return s.next(s.fresh) }

// Full returns a draw that is hardly ever zero, unless it is replayed.
func (s *Source) Full() uint64 {
	if s.full == nil {
		return s.Uint64()
	}
	return s.next(s.full)
}

// Even returns a draw that is spread evenly over the values with successive numbers.
func (s *Source) Even() uint64 { return s.Put(s.even) }

// Put returns v as a fresh draw, which shrinks like any other.
func (s *Source) Put(v uint64) uint64 {
	if s.full == nil {
		return s.Uint64()
	}
	return s.next(func() uint64 { return v })
}

func (s *Source) next(fresh func() uint64) uint64 {
	var v uint64
	p := s.part
	switch n := len(p.drawn.Own); {
	case p.replay != nil && n < len(p.replay.Own):
		v = p.replay.Own[n]
	case len(s.drawn) >= allDraws:
		panic(ErrEndless)
	case len(s.drawn) < freshDraws && fresh != nil && !s.least:
		v = fresh()
	}
	s.drawn = append(s.drawn, v)
	p.drawn.Own = append(p.drawn.Own, v)
	return v
}

// Part makes the draws of f a part of the value, or of the current part.
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

// Least makes the draws of f zero, except those that are replayed: f makes small values.
func (s *Source) Least(f func()) {
	before := s.least
	s.least = true
	defer func() { s.least = before }()
	f()
}

// Int63 implements [rand.Source].
func (s *Source) Int63() int64 { return int64(s.Uint64() >> 1) }

// Seed implements [rand.Source]. It does nothing: see [New].
func (s *Source) Seed(int64) {}

// Stream returns all draws in their order, without the zeros at the end.
func (s *Source) Stream() []uint64 {
	n := len(s.drawn)
	for n > 0 && s.drawn[n-1] == 0 {
		n--
	}
	return slices.Clip(s.drawn[:n])
}

// Tree returns all draws.
func (s *Source) Tree() *Tree { return s.part.drawn }

// Replay returns a source that gives the draws of a value again, and then zeros. A nil tree gives only
// zeros.
func Replay(t *Tree) *Source { return &Source{part: part{replay: t, drawn: &Tree{}}} }

// Of returns a source that gives a stream of draws, regardless of parts, and then zeros.
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

// golden is the golden ratio of 2^64: its multiples are far from each other.
const golden = 0x9e3779b97f4a7c15

// New returns the source of value number i. Another name gives other values.
//
// Value 0 is made of zeros. Some of the others have many zeros: a nil pointer and a pointer to zero
// are rare in uniform randomness, and conversions often fail there.
func New(seed uint64, name string, i int) *Source {
	s := Replay(nil)
	if i == 0 {
		return s
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	rng := randv2.New(randv2.NewPCG(seed^hash.Sum64(), uint64(i)))
	zeros := []float64{0, 0.1, 0.3, 0.5}[i%4]
	s.full, s.even = rng.Uint64, hash.Sum64()+uint64(i)*golden
	s.fresh = func() uint64 {
		if rng.Float64() < zeros {
			return 0
		}
		return rng.Uint64()
	}
	return s
}

package roundtrip

import (
	"slices"
	"time"
)

// A failure is shrunk within these.
const (
	shrinkTries = 3000
	shrinkTime  = 3 * time.Second
)

// shrinker makes a counterexample smaller by making its stream of draws smaller, and the
// object again from that. It knows nothing about objects, so that functions which a user
// has written shrink too, and what they promise about an object still holds.
type shrinker struct {
	best  *counterexample
	try   func(stream []uint64) *counterexample // nil if nothing fails
	tried int
	until time.Time
}

func (s *shrinker) over() bool { return s.tried >= shrinkTries || time.Now().After(s.until) }

// shrink returns the smallest counterexample that is found. That none is smaller is not
// certain.
func (s *shrinker) shrink() *counterexample {
	for {
		before := s.best
		s.blocks(func(stream []uint64, from, to int) []uint64 {
			clear(stream[from:to])
			return stream
		})
		s.blocks(func(stream []uint64, from, to int) []uint64 {
			return slices.Delete(stream, from, to)
		})
		s.collapse()
		s.lower()
		if s.best == before || s.over() {
			return s.best
		}
	}
}

// accept tries a stream, and keeps it if it fails and is smaller.
func (s *shrinker) accept(stream []uint64) bool {
	if s.over() {
		return false
	}
	s.tried++
	got := s.try(stream)
	if got == nil || !got.smaller(s.best) {
		return false
	}
	s.best = got
	return true
}

// blocks changes blocks of the stream, the large ones and those at the end first.
func (s *shrinker) blocks(change func(stream []uint64, from, to int) []uint64) {
	for size := len(s.best.stream); size > 0; size /= 2 {
		for to := len(s.best.stream); to > 0 && !s.over(); to = min(to-size, len(s.best.stream)) {
			from := max(to-size, 0)
			if slices.ContainsFunc(s.best.stream[from:to], func(v uint64) bool { return v != 0 }) || to < len(s.best.stream) {
				s.accept(change(slices.Clone(s.best.stream), from, to))
			}
		}
	}
}

// collapse makes a draw small and deletes some that follow, at once: one draw may say that
// there is a value, or how many elements there are, and the next few what they are. If only
// one of both changed, the rest of the stream would come to mean something else.
func (s *shrinker) collapse() {
	for i := len(s.best.stream) - 1; i >= 0; i-- {
		for _, v := range []uint64{0, 1 << 33} {
			for n := 1; n <= 16 && i+n < len(s.best.stream) && s.best.stream[i] > v && !s.over(); n++ {
				stream := slices.Delete(slices.Clone(s.best.stream), i+1, i+1+n)
				stream[i] = v
				s.accept(stream)
			}
		}
		i = min(i, len(s.best.stream))
	}
}

// lower lowers single values. Of a draw, math/rand takes the upper 31 bits where it needs
// a small number, and the rest of a division: the smallest numbers are tried by name,
// because the way to them is not downhill.
func (s *shrinker) lower() {
	for i := 0; i < len(s.best.stream) && !s.over(); i++ {
		old := s.best.stream[i]
		set := func(v uint64) bool {
			if i >= len(s.best.stream) || v >= s.best.stream[i] {
				return false
			}
			stream := slices.Clone(s.best.stream)
			stream[i] = v
			return s.accept(stream)
		}
		low := uint64(0) // has been tried
		for k := range uint64(5) {
			if set(k << 33) {
				break
			}
			low = max(low, min(k<<33, old))
		}
		for high := old; i < len(s.best.stream) && high-low > 1<<32; {
			high = min(high, s.best.stream[i])
			if high <= low {
				break
			}
			if middle := low + (high-low)/2; set(middle) {
				high = middle
			} else {
				low = middle
			}
		}
	}
}

// smaller says whether an example is smaller than another: first counts what a reader
// sees, then the stream, so that shrinking comes to an end.
func (c *counterexample) smaller(than *counterexample) bool {
	if len(c.object) != len(than.object) {
		return len(c.object) < len(than.object)
	}
	if len(c.stream) != len(than.stream) {
		return len(c.stream) < len(than.stream)
	}
	return slices.Compare(c.stream, than.stream) < 0
}

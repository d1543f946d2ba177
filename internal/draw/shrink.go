package draw

import (
	"slices"
	"time"
)

// Found is a value to shrink.
type Found[T any] struct {
	Value  T
	Size   int // of the value, as a reader sees it
	Stream []uint64
}

// Shrinker says how much effort is made.
type Shrinker struct {
	Tries int
	Time  time.Duration
}

// Shrink returns the smallest value that try still finds, and how many streams it has
// tried: it makes the stream smaller, and the value again from that. That none is smaller
// is not certain. For a stream of which nothing is found, try returns false.
func Shrink[T any](effort Shrinker, best Found[T], try func(stream []uint64) (Found[T], bool)) (Found[T], int) {
	s := &shrinker[T]{best: best, try: try, left: effort.Tries, until: time.Now().Add(effort.Time)}
	s.shrink()
	return s.best, effort.Tries - s.left
}

type shrinker[T any] struct {
	best   Found[T]
	try    func(stream []uint64) (Found[T], bool)
	left   int // tries
	until  time.Time
	shrunk int // how often
}

func (s *shrinker[T]) over() bool { return s.left == 0 || time.Now().After(s.until) }

func (s *shrinker[T]) shrink() {
	for {
		before := s.shrunk
		s.blocks(func(stream []uint64, from, to int) []uint64 {
			clear(stream[from:to])
			return stream
		})
		s.blocks(func(stream []uint64, from, to int) []uint64 {
			return slices.Delete(stream, from, to)
		})
		s.collapse(1, 16)
		s.lower()
		if s.shrunk == before {
			s.collapse(17, 64)
		}
		if s.shrunk == before || s.over() {
			return
		}
	}
}

// accept tries a stream, and keeps it if it fails and is smaller.
func (s *shrinker[T]) accept(stream []uint64) bool {
	if s.over() {
		return false
	}
	s.left--
	got, found := s.try(stream)
	if !found || !got.smaller(s.best) {
		return false
	}
	s.best = got
	s.shrunk++
	return true
}

// blocks changes blocks of the stream, the large ones and those at the end first.
func (s *shrinker[T]) blocks(change func(stream []uint64, from, to int) []uint64) {
	for size := len(s.best.Stream); size > 0; size /= 2 {
		for to := len(s.best.Stream); to > 0 && !s.over(); to = min(to-size, len(s.best.Stream)) {
			from := max(to-size, 0)
			if slices.ContainsFunc(s.best.Stream[from:to], func(v uint64) bool { return v != 0 }) || to < len(s.best.Stream) {
				s.accept(change(slices.Clone(s.best.Stream), from, to))
			}
		}
	}
}

// collapse makes a draw small and deletes some that follow, from so many to so many, at once: one draw may say that
// there is a value, or how many elements there are, and the next few what they are. If only
// one of both changed, the rest of the stream would come to mean something else.
func (s *shrinker[T]) collapse(from, to int) {
	for i := len(s.best.Stream) - 1; i >= 0; i-- {
		for _, v := range []uint64{0, 1 << 33} {
			for n := from; n <= to && i+n < len(s.best.Stream) && s.best.Stream[i] > v && !s.over(); n++ {
				stream := slices.Delete(slices.Clone(s.best.Stream), i+1, i+1+n)
				stream[i] = v
				s.accept(stream)
			}
		}
		i = min(i, len(s.best.Stream))
	}
}

// lower lowers single values. Of a draw, math/rand takes the upper 31 bits where it needs
// a small number, and the rest of a division: the smallest numbers are tried by name,
// because the way to them is not downhill.
func (s *shrinker[T]) lower() {
	for i := 0; i < len(s.best.Stream) && !s.over(); i++ {
		old := s.best.Stream[i]
		set := func(v uint64) bool {
			if i >= len(s.best.Stream) || v >= s.best.Stream[i] {
				return false
			}
			stream := slices.Clone(s.best.Stream)
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
		for high := old; i < len(s.best.Stream) && high-low > 1<<32; {
			high = min(high, s.best.Stream[i])
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

// smaller says whether a value is smaller than another: first counts what a reader sees,
// then the stream, so that shrinking comes to an end.
func (f Found[T]) smaller(than Found[T]) bool {
	if f.Size != than.Size {
		return f.Size < than.Size
	}
	if len(f.Stream) != len(than.Stream) {
		return len(f.Stream) < len(than.Stream)
	}
	return slices.Compare(f.Stream, than.Stream) < 0
}

package choices

import (
	"slices"
	"time"
)

// Found is a value to shrink.
type Found[T any] struct {
	Value T
	Size  int // of the value, as a reader sees it
	Tree  *Tree
}

// Shrinker bounds the effort.
type Shrinker struct {
	Tries int
	Time  time.Duration // 0 for no limit
}

// Shrink returns the smallest value that it finds, and how many it has tried. It makes the draws
// smaller, and try makes a value of them, or returns false if that is not a counterexample. Whole
// parts go first, many at once; then it looks into the remaining ones.
func Shrink[T any](effort Shrinker, best Found[T], try func(*Tree) (Found[T], bool)) (Found[T], int) {
	s := &shrinker[T]{best: best, try: try, left: effort.Tries}
	if effort.Time > 0 {
		s.until = time.Now().Add(effort.Time)
	}
	for before := -1; s.shrunk != before && !s.over(); {
		before = s.shrunk
		s.part(nil)
		if s.shrunk == before {
			s.collapse(nil)
		}
	}
	return s.best, effort.Tries - s.left
}

type shrinker[T any] struct {
	best   Found[T]
	try    func(*Tree) (Found[T], bool)
	left   int       // tries
	until  time.Time // zero for no limit
	shrunk int       // times
}

func (s *shrinker[T]) over() bool {
	return s.left == 0 || !s.until.IsZero() && time.Now().After(s.until)
}

// change changes the part at a path, and keeps the change if a smaller value is found.
func (s *shrinker[T]) change(path []int, change func(t *Tree)) bool {
	if s.over() {
		return false
	}
	s.left--
	got, found := s.try(s.best.Tree.with(path, change))
	if !found || !got.smaller(s.best) {
		return false
	}
	s.best = got
	s.shrunk++
	return true
}

// with returns a copy of a tree with a change of the part at a path.
func (t *Tree) with(path []int, change func(t *Tree)) *Tree {
	out := &Tree{slices.Clone(t.Own), slices.Clone(t.Parts)}
	switch {
	case len(path) == 0:
		change(out)
	case path[0] < len(out.Parts):
		out.Parts[path[0]] = out.Parts[path[0]].with(path[1:], change)
	}
	return out
}

// at returns the part of the best tree at a path, or an empty tree.
func (s *shrinker[T]) at(path []int) *Tree {
	t := s.best.Tree
	for _, i := range path {
		if i >= len(t.Parts) {
			return &Tree{}
		}
		t = t.Parts[i]
	}
	return t
}

// part shrinks the part at a path: as a whole, by its parts, by its own draws, and then each
// of its parts.
func (s *shrinker[T]) part(path []int) {
	if s.at(path).zero() || s.change(path, func(t *Tree) { *t = Tree{} }) {
		return
	}
	own, parts := func() int { return len(s.at(path).Own) }, func() int { return len(s.at(path).Parts) }
	s.blocks(parts, func(from, to int) bool {
		return !zeros(s.at(path).Parts[from:to]) && s.change(path, func(t *Tree) {
			for i := from; i < to; i++ {
				t.Parts[i] = &Tree{}
			}
		})
	})
	s.blocks(own, func(from, to int) bool {
		return slices.Max(s.at(path).Own[from:to]) > 0 && s.change(path, func(t *Tree) { clear(t.Own[from:to]) })
	})
	s.lower(path)
	s.elements(path)
	for i := parts() - 1; i >= 0; i-- {
		s.part(append(slices.Clip(path), i))
	}
}

func (t *Tree) zero() bool {
	return !slices.ContainsFunc(t.Own, func(v uint64) bool { return v != 0 }) && zeros(t.Parts)
}

func zeros(all []*Tree) bool {
	return !slices.ContainsFunc(all, func(t *Tree) bool { return !t.zero() })
}

// blocks tries ranges of count things, large ones and those at the end first.
func (s *shrinker[T]) blocks(count func() int, try func(from, to int) bool) {
	for size := count(); size > 0; size /= 2 {
		for to := count(); to > 0 && !s.over(); to = min(to-size, count()) {
			try(max(to-size, 0), to)
		}
	}
}

// elements removes parts, such as elements of a list. The last own draw may be their number.
func (s *shrinker[T]) elements(path []int) {
	if len(s.at(path).Own) == 0 {
		return
	}
	s.blocks(func() int { return len(s.at(path).Parts) }, func(from, to int) bool {
		rest := uint64(len(s.at(path).Parts) - (to - from))
		shorter := func(n uint64) bool {
			return s.change(path, func(t *Tree) {
				t.Parts = slices.Delete(t.Parts, from, to)
				if last := len(t.Own) - 1; n < named {
					t.Own[last] = min(t.Own[last], n<<33)
				}
			})
		}
		return shorter(rest) || rest < named && shorter(rest+1)
	})
}

// named is how many of the smallest draws stand for themselves.
const named = 16

// collapse deletes draws, alone or while it makes the one before them small: that one may be for the
// presence of a value or the number of elements, and the next few for the values.
func (s *shrinker[T]) collapse(path []int) {
	if s.at(path).zero() {
		return
	}
	own := func() int { return len(s.at(path).Own) }
	s.blocks(own, func(from, to int) bool {
		return s.change(path, func(t *Tree) { t.Own = slices.Delete(t.Own, from, to) })
	})
	for i := own() - 1; i >= 0; i = min(i-1, own()-1) {
		for _, v := range []uint64{0, 1 << 33} {
			for n := 1; n <= 64 && i+n < own() && s.at(path).Own[i] > v && !s.over(); n++ {
				s.change(path, func(t *Tree) {
					t.Own = slices.Delete(t.Own, i+1, i+1+n)
					t.Own[i] = v
				})
			}
		}
	}
	for i := len(s.at(path).Parts) - 1; i >= 0; i-- {
		s.collapse(append(slices.Clip(path), i))
	}
}

// lower lowers single draws. Of a draw, math/rand takes the upper 31 bits where it needs a
// small number, and the rest of a division: the smallest numbers are tried by name, because
// the way to them is not downhill.
func (s *shrinker[T]) lower(path []int) {
	for i := 0; i < len(s.at(path).Own) && !s.over(); i++ {
		old := s.at(path).Own[i]
		value := func() uint64 {
			if own := s.at(path).Own; i < len(own) {
				return own[i]
			}
			return 0
		}
		set := func(v uint64) bool {
			return v < value() && s.change(path, func(t *Tree) { t.Own[i] = v })
		}
		low := uint64(0) // has been tried
		for k := range uint64(5) {
			if set(k << 33) {
				break
			}
			low = max(low, min(k<<33, old))
		}
		for high := old; high-low > 1<<32; {
			if high = min(high, value()); high <= low {
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

// smaller reports whether a value is smaller than another: by its size, then by its draws, so that
// shrinking ends.
func (f Found[T]) smaller(than Found[T]) bool {
	if f.Size != than.Size {
		return f.Size < than.Size
	}
	a, b := f.Tree.flat(nil), than.Tree.flat(nil)
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return slices.Compare(a, b) < 0
}

func (t *Tree) flat(all []uint64) []uint64 {
	all = append(all, t.Own...)
	for _, p := range t.Parts {
		all = p.flat(all)
	}
	return all
}

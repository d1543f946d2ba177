package generate

// search changes the choices of an accepted value towards wanted ones, as far as the values that
// they make are accepted.
type search struct {
	try   func(c *choice) (any, bool)
	left  int // tries
	root  *choice
	value any // of the root; nil if nothing was accepted yet
}

// toward changes at, which makes an accepted value.
func (s *search) toward(at, want *choice) {
	s.root = at
	for before := -1; before != s.left && s.left > 0 && !at.same(want); {
		before = s.left
		if !s.part(at, want) {
			return
		}
	}
}

// accept makes a change of choices, and undoes it if the value is refused.
func (s *search) accept(at *choice, change func()) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	before := *at.clone()
	change()
	value, ok := s.try(s.root)
	if !ok {
		*at = before
		return false
	}
	s.value = value
	return true
}

// part changes one part: all of it, or else its own parts one by one. It reports whether anything
// was changed.
func (s *search) part(at, want *choice) bool {
	if s.left <= 0 || at.same(want) {
		return false
	}
	if s.accept(at, func() { at.set(want) }) {
		return true
	}
	draw := func(draw uint64) bool { return s.accept(at, func() { at.drawn, at.draw = true, draw }) }
	n := max(len(at.kids), len(want.kids))
	if n == 0 {
		// a draw between the two may be accepted
		for _, d := range []uint64{unit, 2 * unit, 3 * unit, 4 * unit, want.draw / 2, want.draw / 16} {
			between := at.draw < d && d < want.draw && d > named*unit || want.draw < d && d < at.draw
			if between && draw(d) {
				return true
			}
		}
		return false
	}
	changed := at.draw != want.draw && draw(want.draw)
	if at.draw == 0 && want.draw != 0 {
		return false // absent values have no parts
	}
	return s.parts(at, want, 0, n) || changed
}

// parts changes a range of parts: all at once, or else its halves.
func (s *search) parts(at, want *choice, from, to int) bool {
	if to-from == 1 {
		return s.part(at.kid(from), want.kid(from))
	}
	same := true
	for i := from; i < to; i++ {
		same = same && at.kid(i).same(want.kid(i))
	}
	if same || s.left <= 0 {
		return false
	}
	if s.accept(at, func() {
		for i := from; i < to; i++ {
			at.kid(i).set(want.kid(i))
		}
	}) {
		return true
	}
	middle := from + (to-from)/2
	first := s.parts(at, want, from, middle)
	return s.parts(at, want, middle, to) || first
}

package generate

// search changes choices of a value that is accepted towards those that are wanted, as
// far as the value that they make is.
type search struct {
	try   func(c *choice) (any, bool)
	left  int // tries
	root  *choice
	value any // of the root; nil if nothing was accepted yet
}

// toward changes at, of which an accepted value is made.
func (s *search) toward(at, want *choice) {
	s.root = at
	for before := -1; before != s.left && s.left > 0 && !at.same(want); {
		accepted := s.part(at, want)
		if before = s.left; !accepted {
			return
		}
	}
}

// accept changes choices, and takes the change back if it is refused.
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

// part changes one part: at once, or else one by one of its own parts. It says whether
// anything was changed.
func (s *search) part(at, want *choice) bool {
	if s.left <= 0 || at.same(want) {
		return false
	}
	if s.accept(at, func() { at.set(want) }) {
		return true
	}
	n := max(len(at.kids), len(want.kids))
	if n == 0 {
		// one between them may do
		for _, draw := range []uint64{unit, 2 * unit, 3 * unit, 4 * unit, want.draw / 2, want.draw / 16} {
			between := at.draw < draw && draw < want.draw && draw > named*unit || want.draw < draw && draw < at.draw
			if between && s.accept(at, func() { at.drawn, at.draw = true, draw }) {
				return true
			}
		}
		return false
	}
	changed := false
	if at.draw != want.draw {
		changed = s.accept(at, func() { at.drawn, at.draw = true, want.draw })
		if !changed && at.draw == 0 {
			return false // what is absent has no parts
		}
	}
	return s.kids(at, want, 0, n) || changed
}

func (s *search) kids(at, want *choice, from, to int) bool {
	if to-from == 1 {
		return s.part(at.kid(from), want.kid(from))
	}
	differ := false
	for i := from; i < to; i++ {
		differ = differ || !at.kid(i).same(want.kid(i))
	}
	if !differ || s.left <= 0 {
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
	first := s.kids(at, want, from, middle)
	return s.kids(at, want, middle, to) || first
}

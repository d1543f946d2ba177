package lost

// match returns for each element of H the position of the one of B that has the
// same selector, or none.
func match(b map[step]int, h []step) []int {
	from := make([]int, len(h))
	for j, s := range h {
		from[j] = none
		if i, ok := b[s.content()]; ok {
			from[j] = i
		}
	}
	return from
}

// taken reports for each of the n elements of B whether it is matched.
func taken(from []int, n int) []bool {
	taken := make([]bool, n)
	for _, i := range from {
		if i != none {
			taken[i] = true
		}
	}
	return taken
}

// guess matches what match has left over of a list without keys: elements of
// which B has a part, at the same place or else the next ones in order, and
// then, if the lists are equally long, all others in order.
func guess(from []int, b, h []*node) {
	taken := taken(from, len(b))
	for j := range min(len(b), len(h)) {
		if from[j] == none && !taken[j] && b[j].within(h[j]) {
			from[j], taken[j] = j, true
		}
	}
	free := newRing(taken)
	for j := range h {
		if from[j] != none {
			continue
		}
		from[j] = free.take(func(i int) bool { return b[i].within(h[j]) })
		if from[j] != none {
			taken[from[j]] = true
		}
	}
	if len(b) != len(h) {
		return
	}
	i := 0
	for j := range h {
		if from[j] != none {
			continue
		}
		for taken[i] {
			i++
		}
		from[j], taken[i] = i, true
	}
}

// ring is a circle of positions, from which some are taken.
type ring struct {
	next []int // for each position the one behind it
	last int   // the position before the one to look at first
	left int
}

func newRing(taken []bool) *ring {
	r := &ring{next: make([]int, len(taken)), last: none}
	first := none
	for i := range taken {
		switch {
		case taken[i]:
			continue
		case first == none:
			first = i
		default:
			r.next[r.last] = i
		}
		r.last = i
		r.left++
	}
	if r.left > 0 {
		r.next[r.last] = first
	}
	return r
}

// window is how many positions are looked at, so that long lists do not take
// quadratic time.
const window = 64

// take takes the first position that fits, beginning behind the one taken last;
// none if there is none in the window.
func (r *ring) take(fits func(i int) bool) int {
	before := r.last
	for range min(window, r.left) {
		i := r.next[before]
		if fits(i) {
			r.next[before] = r.next[i]
			r.last = before
			r.left--
			return i
		}
		before = i
	}
	return none
}

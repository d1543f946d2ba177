package generate

import (
	"math"
	"math/rand/v2"
)

// choice is the draws for a value: one of its own, and the choices of its parts, which each kind of
// value numbers. A part that is not in the tree was not drawn, and is zero.
type choice struct {
	drawn bool
	draw  uint64
	kids  []*choice
}

func (c *choice) kid(i int) *choice {
	for len(c.kids) <= i {
		c.kids = append(c.kids, &choice{})
	}
	return c.kids[i]
}

func (c *choice) clone() *choice {
	out := &choice{drawn: c.drawn, draw: c.draw}
	if len(c.kids) > 0 {
		out.kids = make([]*choice, len(c.kids))
		for i, k := range c.kids {
			out.kids[i] = k.clone()
		}
	}
	return out
}

// set makes a choice a copy of another one.
func (c *choice) set(to *choice) { *c = *to.clone() }

// same reports whether two choices make the same value.
func (c *choice) same(as *choice) bool {
	if c.draw != as.draw {
		return false
	}
	for i := range max(len(c.kids), len(as.kids)) {
		a, b := &choice{}, &choice{}
		if i < len(c.kids) {
			a = c.kids[i]
		}
		if i < len(as.kids) {
			b = as.kids[i]
		}
		if !a.same(b) {
			return false
		}
	}
	return true
}

// vary makes some of the draws zero and some new.
func (c *choice) vary(rng *rand.Rand, zero, fresh float64) {
	switch f := rng.Float64(); {
	case f < zero:
		c.draw = 0
	case f < zero+fresh:
		c.draw = rng.Uint64()
	}
	for _, k := range c.kids {
		k.vary(rng, zero, fresh)
	}
}

// The upper 31 bits of a draw make a value: math/rand takes them for a small number, and streams
// shrink to such. The smallest few stand for themselves, so that shrinking can try them one by one.
// The others rise with the draw, so that halving it finds the way down.
const (
	unit  = 1 << 33
	named = 16
)

// fraction is in [0, 1).
func fraction(draw uint64) float64 { return float64(draw/unit) / (1 << 31) }

// some reports whether an optional value is present: in three of four cases.
func some(draw uint64) bool {
	x := draw / unit
	return x > 0 && (x < named || fraction(draw) >= 0.25)
}

// pick returns a number less than n.
func pick(draw uint64, n int) int {
	if x := draw / unit; x < named {
		return int(x) % n
	}
	return int(fraction(draw) * float64(n))
}

// count returns the size of a list or map: a few elements, and sometimes one of the sizes.
func count(draw uint64, least, most int, sizes []int) int {
	n := 0
	switch x, f := draw/unit, fraction(draw); {
	case x < named:
		n = int(x)
	case f < 0.84 || len(sizes) == 0:
		n = int(f / 0.21)
	default:
		size, _ := edge(sizes, (f-0.84)*6.25)
		return max(least, min(size, most))
	}
	return least + min(n, most-least)
}

// Count returns the size of a list or map: zero for zero, a few most often, and some sizes next to
// where lists are cut.
func Count(draw uint64) int { return count(draw, 0, large, usualSizes) }

// usualSizes are next to where lists are often cut.
var usualSizes = []int{11, 17}

// large bounds the elements of a list, unless it needs more. The first dense elements are drawn, the
// others are small.
const (
	large = 1 << 10
	dense = 4
)

// bump returns another draw for each try: the next of the smallest few, else any.
func bump(draw uint64, try int) uint64 {
	if try == 0 {
		return draw
	}
	if x := draw/unit + uint64(try); x < named {
		return x * unit
	}
	return scatter(draw, try)
}

// scatter returns a random number that is a function of its arguments.
func scatter(draw uint64, try int) uint64 {
	z := draw/unit + uint64(try)*0x9e3779b97f4a7c15 // SplitMix64
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// random returns a source of draws. A share of them is zero, and some are small.
func random(seed uint64, try int, zeros float64) source {
	rng := rand.New(rand.NewPCG(seed/unit, uint64(try)))
	return loose(func() uint64 {
		switch f := rng.Float64(); {
		case f < zeros:
			return 0
		case f > 0.85:
			return (1 + rng.Uint64N(4)) * unit
		}
		return rng.Uint64()
	})
}

// loose is a source that ignores parts.
type loose func() uint64

func (l loose) Uint64() uint64 { return l() }
func (l loose) Part(f func())  { f() }

// limit returns a bound of a schema as an int, or otherwise for an absent bound.
func limit(bound *int64, otherwise int) int {
	if bound == nil {
		return otherwise
	}
	return int(min(*bound, math.MaxInt32))
}

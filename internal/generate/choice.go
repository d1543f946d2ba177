package generate

import (
	"math"
	"math/rand/v2"
)

// choice is what was drawn for a value: a draw of its own and the choices of its parts,
// which are numbered by what the value is. What is not in the tree was never drawn, and is
// zero.
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

// set makes a choice another one, without sharing anything.
func (c *choice) set(to *choice) { *c = *to.clone() }

// same says whether two choices make the same value.
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

// What a draw says are its upper 31 bits: math/rand takes them for a small number, and a
// stream shrinks to such. The smallest few are taken as they are, so that they can be
// tried by name; the others rise with the draw, so that the way down is found by halving.
const (
	unit  = 1 << 33
	named = 16
)

// fraction is in [0, 1).
func fraction(draw uint64) float64 { return float64(draw/unit) / (1 << 31) }

// some says whether there is something that need not be: in three of four cases.
func some(draw uint64) bool {
	x := draw / unit
	return x > 0 && (x < named || fraction(draw) >= 0.25)
}

// pick is less than n.
func pick(draw uint64, n int) int {
	if x := draw / unit; x < named {
		return int(x) % n
	}
	return int(fraction(draw) * float64(n))
}

// count is about what a reader would write, and sometimes a size that was chosen.
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

// usualSizes are next to where lists are cut.
var usualSizes = []int{11, 17}

// large is how many elements there are that need not be more, and dense how many are
// made of draws if there are more than usual: the others are small.
const (
	large = 1 << 10
	dense = 4
)

// bump is another draw than before: for those that are named the next, else any.
func bump(draw uint64, try int) uint64 {
	if try == 0 {
		return draw
	}
	if x := draw/unit + uint64(try); x < named {
		return x * unit
	}
	return scatter(draw, try)
}

// scatter is random, and a function of what it is given.
func scatter(draw uint64, try int) uint64 {
	z := draw/unit + uint64(try)*0x9e3779b97f4a7c15 // SplitMix64
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// random returns a source of draws of which so many are zero, and some small.
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

// loose are draws that have no parts.
type loose func() uint64

func (l loose) Uint64() uint64 { return l() }
func (l loose) Part(f func())  { f() }

// limit is what a bound of a schema is for an int: absent or far away is the other bound.
func limit(bound *int64, otherwise int) int {
	if bound == nil {
		return otherwise
	}
	return int(min(*bound, math.MaxInt32))
}

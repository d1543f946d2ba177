package generate

import "math"

// The upper 31 bits of a draw make a value, because math/rand also uses them for a small number,
// and streams shrink to small numbers. The smallest few values stand for themselves, so that
// shrinking can try them one by one. The others rise with the draw, so that halving the draw makes
// them smaller.
const (
	unit  = 1 << 33
	named = 16
)

// fraction is in [0, 1).
func fraction(draw uint64) float64 { return float64(draw/unit) / (1 << 31) }

// present reports whether an optional value is present: for the smallest draws except zero, and for
// a share of the others.
func present(draw uint64, share float64) bool {
	x := draw / unit
	return x > 0 && (x < named || fraction(draw) >= 1-share)
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
	case x <= longList:
		n = int(x)
	case f < 0.84 || len(sizes) == 0:
		n = int(f / 0.21)
	default:
		size, _ := edge(sizes, (f-0.84)*6.25)
		return max(least, min(size, most))
	}
	return least + min(n, most-least)
}

// Count returns the size of a list or map: zero for zero, a few elements most often, and sometimes
// a size at which lists are often cut. See [Plan.Length].
func Count(draw uint64) int { return count(draw, 0, large, usualSizes) }

// usualSizes are one more than the sizes to which lists are often cut.
var usualSizes = []int{11, 17}

// large bounds the elements of a list, unless the schema requires more. The first dense elements
// are drawn, and the others are small.
const (
	large = 1 << 10
	dense = 4
)

// bump returns another draw for each try: the next of the smallest few, or else any.
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

// limit returns a bound of a schema as an int, or the value of otherwise if there is none.
func limit(bound *int64, otherwise int) int {
	if bound == nil {
		return otherwise
	}
	return int(min(*bound, math.MaxInt32))
}

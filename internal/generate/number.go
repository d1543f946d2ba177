package generate

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// numbers is what the numbers of a node may be.
type numbers struct {
	low, high       int64 // of integers
	least, most     float64
	openLow, openUp bool  // least and most themselves are not allowed
	step            int64 // of integers; 1 if any
	steps           []float64
	bounded         bool      // at all
	edges           []float64 // to try
}

// compileNumbers returns an error if there is no number.
func compileNumbers(path string, e *edges, k kind, own *structuralschema.ValueValidation, all []*structuralschema.ValueValidation) (numbers, error) {
	n := numbers{low: math.MinInt64, high: math.MaxInt64, least: -math.MaxFloat64, most: math.MaxFloat64, step: 1}
	whole := k == kindInteger
	if own != nil {
		switch {
		case k == kindInteger && own.Format == "int32":
			n.low, n.high = math.MinInt32, math.MaxInt32
		case k == kindNumber && own.Format == "float":
			n.least, n.most, n.bounded = -math.MaxFloat32, math.MaxFloat32, true
		}
	}
	for _, v := range all {
		// The API server refuses every integer if a bound is none of its format.
		for _, bound := range []*float64{v.Minimum, v.Maximum, v.MultipleOf} {
			if bound == nil || !whole || v != own {
				continue
			}
			low, high := int64(math.MinInt64), int64(math.MaxInt64)
			if own.Format == "int32" {
				low, high = math.MinInt32, math.MaxInt32
			}
			if i, err := strconv.ParseInt(strconv.FormatFloat(*bound, 'f', -1, 64), 10, 64); err != nil || i < low || i > high {
				return n, fmt.Errorf("no integer is accepted: the bound %v is not one", *bound)
			}
		}
		if v.Minimum != nil {
			n.bounded = true
			if *v.Minimum > n.least || *v.Minimum == n.least && v.ExclusiveMinimum {
				n.least, n.openLow = *v.Minimum, v.ExclusiveMinimum
			}
			if *v.Minimum >= 1<<63 || *v.Minimum < -1<<63 {
				n.low = math.MaxInt64 // not converted to one integer by all processors
				n.high = math.MinInt64
				continue
			}
			low := int64(math.Ceil(*v.Minimum))
			if v.ExclusiveMinimum {
				// upstream compares with what is before the decimal point
				low = max(int64(math.Floor(*v.Minimum)), int64(*v.Minimum)) + 1
			}
			n.low = max(n.low, low)
		}
		if v.Maximum != nil {
			n.bounded = true
			if *v.Maximum < n.most || *v.Maximum == n.most && v.ExclusiveMaximum {
				n.most, n.openUp = *v.Maximum, v.ExclusiveMaximum
			}
			if *v.Maximum >= 1<<63 || *v.Maximum < -1<<63 {
				n.low = math.MaxInt64
				n.high = math.MinInt64
				continue
			}
			high := int64(math.Floor(*v.Maximum))
			if v.ExclusiveMaximum {
				high = min(int64(math.Ceil(*v.Maximum)), int64(*v.Maximum)) - 1
			}
			n.high = min(n.high, high)
		}
		if v.MultipleOf != nil {
			n.bounded = true
			n.steps = append(n.steps, *v.MultipleOf)
			if step := int64(*v.MultipleOf); step <= 0 {
				n.low, n.high = math.MaxInt64, math.MinInt64
			} else if n.step = lcm(n.step, step); n.step <= 0 {
				n.step = math.MaxInt64 // zero is left
			}
		}
	}
	if k == kindInteger && n.whole() == 0 {
		return n, fmt.Errorf("no integer is between %d and %d, and a multiple of %d", n.low, n.high, n.step)
	}
	if k == kindNumber && (n.least > n.most || n.least == n.most && (n.openLow || n.openUp)) {
		return n, fmt.Errorf("no number is between %v and %v", n.least, n.most)
	}
	near, _ := e.near(path, "minimum", "maximum")
	for _, f := range near {
		if k == kindNumber && n.allowed(f) || f >= float64(n.low) && f <= float64(n.high) && f == math.Trunc(f) && math.Abs(f) < 1<<53 && int64(f)%n.step == 0 {
			n.edges = append(n.edges, f)
		}
	}
	return n, nil
}

// edge returns a number next to a bound in one of four cases, if there is one.
func (n *numbers) edge(draw uint64) (float64, bool) {
	if len(n.edges) == 0 || draw/unit < named || scatter(draw, 3)%4 > 0 {
		return 0, false
	}
	return n.edges[scatter(draw, 4)%uint64(len(n.edges))], true
}

func lcm(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	hi, lo := bits.Mul64(uint64(a/x), uint64(b))
	if hi > 0 || lo > math.MaxInt64 {
		return -1
	}
	return int64(lo)
}

// multiples returns the first and the last integer of which step times is allowed.
func (n *numbers) multiples() (low, high int64) {
	low, high = n.low/n.step, n.high/n.step
	if low > 0 && low*n.step < n.low {
		low++
	}
	if n.low > 0 && low == 0 {
		low = 1
	}
	if high < 0 && high*n.step > n.high {
		high--
	}
	if n.high < 0 && high == 0 {
		high = -1
	}
	return low, high
}

// whole is how many integers there are, many if there are many.
func (n *numbers) whole() int {
	low, high := n.multiples()
	if n.low > n.high || low > high {
		return 0
	}
	if d := uint64(high) - uint64(low); d < many {
		return int(d) + 1
	}
	return many
}

func (n *numbers) integer(draw uint64) int64 {
	if f, ok := n.edge(draw); ok {
		return int64(f)
	}
	low, high := n.multiples()
	return integer(draw, low, high) * n.step
}

// integer is between two others: that which is nearest to zero for zero, the
// bounds themselves and what is near to zero more often than the rest.
func integer(draw uint64, low, high int64) int64 {
	least := min(max(0, low), high)
	up, down := uint64(high)-uint64(least), uint64(least)-uint64(low)
	if x := draw / unit; x < named {
		if up > 0 {
			return least + int64(min(x, up))
		}
		return least - int64(min(x, down))
	}
	f := fraction(draw)
	switch {
	case down == 0:
		return least + int64(along(f, draw, up))
	case up == 0:
		return least - int64(along(f, draw, down))
	case f < 0.67:
		return least + int64(along(f/0.67, draw, up))
	default:
		return least - int64(along(0.1+(f-0.67)/0.33*0.9, draw, down))
	}
}

// along is at most n, and rises with f.
func along(f float64, draw, n uint64) uint64 {
	switch {
	case n == 0 || f < 0.1:
		return 0
	case f < 0.55:
		return 1 + uint64((f-0.1)/0.45*float64(min(n, 10)))%n
	case f < 0.85:
		exponent := min(3+int((f-0.55)/0.3*61), bits.Len64(n)-1)
		exponent = max(exponent, 0)
		return min(1<<exponent|scatter(draw, 1)&(1<<exponent-1), n)
	case f < 0.9:
		return n - 1
	default:
		return n
	}
}

// number is as JSON has it: an integer if it is one. It may not be allowed.
func (n *numbers) number(draw uint64) any {
	if f, ok := n.edge(draw); ok {
		return jsonNumber(f)
	}
	least := min(max(0, n.least), n.most)
	if len(n.steps) > 0 {
		step := n.steps[0]
		low, high := math.Ceil(max(n.least, -1e18)/step), math.Floor(min(n.most, 1e18)/step)
		k := integer(draw, int64(max(low, -1<<53)), int64(min(high, 1<<53)))
		// no more digits than the step has: not 0.30000000000000004
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(k)*step, 'g', 15, 64), 64)
		return jsonNumber(f)
	}
	if x := draw / unit; x < named {
		switch f := float64(x); {
		case n.allowed(least + f):
			return jsonNumber(least + f)
		case n.allowed(least - f):
			return jsonNumber(least - f)
		case n.openLow && least == n.least && n.most-n.least < 1:
			return jsonNumber(n.least + (n.most-n.least)/2)
		}
	}
	direction := 1.0
	if n.most <= 0 || n.least < 0 && scatter(draw, 1)%3 == 0 {
		direction = -1
	}
	f := fraction(draw)
	rest := float64(scatter(draw, 2)>>11) / (1 << 53)
	switch {
	case f < 0.35:
		return jsonNumber(least + direction*math.Floor(f/0.35*10))
	case f < 0.65:
		return jsonNumber(least + direction*math.Floor(f*1000)/8)
	case f < 0.8:
		return jsonNumber(least + direction*math.Trunc(math.Exp2((f-0.65)/0.15*63)*(1+rest)))
	case f < 0.9:
		low, high := max(n.least, -1e6), min(n.most, 1e6)
		if low > high {
			low, high = n.least, n.most
		}
		return jsonNumber(low + rest*(high-low))
	case f < 0.94:
		return jsonNumber(n.least)
	case f < 0.98:
		return jsonNumber(n.most)
	default:
		return jsonNumber(direction * math.Exp2((rest-0.5)*200))
	}
}

func (n *numbers) allowed(f float64) bool {
	return (f > n.least || f == n.least && !n.openLow) && (f < n.most || f == n.most && !n.openUp)
}

// jsonNumber is what a number is once it has been written and read again, as Kubernetes
// does it.
func jsonNumber(f float64) any {
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return f
}

// Integer returns an integer of so many bits: zero for zero, and the smallest and the largest
// one more often than others.
func Integer(draw uint64, bits int) int64 {
	return integer(draw, math.MinInt64>>(64-bits), math.MaxInt64>>(64-bits))
}

// Natural is [Integer] for unsigned ones.
func Natural(draw uint64, bits int) uint64 {
	most := uint64(math.MaxUint64) >> (64 - bits)
	if x := draw / unit; x < named {
		return min(x, most)
	}
	return along(fraction(draw), draw, most)
}

// Float returns a number of so many bits, whole or not: zero for zero.
func Float(draw uint64, bits int) float64 {
	most := math.MaxFloat64
	if bits == 32 {
		most = math.MaxFloat32
	}
	n := numbers{least: -most, most: most, step: 1}
	if f, ok := n.number(draw).(float64); ok {
		return f
	}
	return float64(n.number(draw).(int64))
}

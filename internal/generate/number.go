package generate

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// numbers are the numbers of a node.
type numbers struct {
	low, high       int64 // of integers
	least, most     float64
	openLow, openUp bool  // least and most themselves are not allowed
	step            int64 // of integers; 1 if any
	steps           []float64
	edges           []float64 // to try
}

// compileNumbers returns an error if there is no number.
func compileNumbers(path string, e *edges, k kind, own *valueValidation, all flat) (numbers, error) {
	n := numbers{low: math.MinInt64, high: math.MaxInt64, least: -math.MaxFloat64, most: math.MaxFloat64, step: 1}
	own = cmp.Or(own, &valueValidation{})
	switch {
	case k == kindInteger && own.Format == "int32":
		n.low, n.high = math.MinInt32, math.MaxInt32
	case k == kindNumber && own.Format == "float":
		n.least, n.most = -math.MaxFloat32, math.MaxFloat32
	}
	if bound := n.beyondFormat(own); bound != nil && k == kindInteger {
		return n, fmt.Errorf("no integer is accepted: the bound %v is not one", *bound)
	}
	for _, v := range all {
		n.narrow(v.ValueValidation)
	}
	if k == kindInteger && n.noInteger() {
		return n, fmt.Errorf("no integer is between %d and %d, and a multiple of %d", n.low, n.high, n.step)
	}
	if k == kindNumber && (n.least > n.most || n.least == n.most && (n.openLow || n.openUp)) {
		return n, fmt.Errorf("no number is between %v and %v", n.least, n.most)
	}
	near, _ := e.near(path, "minimum", "maximum")
	for _, f := range near {
		whole := f == math.Trunc(f) && math.Abs(f) < 1<<53 && f >= float64(n.low) && f <= float64(n.high)
		if k == kindNumber && n.allowed(f) || whole && int64(f)%n.step == 0 {
			n.edges = append(n.edges, f)
		}
	}
	return n, nil
}

// beyondFormat returns a bound that is not an integer of the format, or nil. The API server refuses all
// integers then.
func (n *numbers) beyondFormat(v *valueValidation) *float64 {
	for _, bound := range []*float64{v.Minimum, v.Maximum, v.MultipleOf} {
		if bound != nil {
			i, err := strconv.ParseInt(strconv.FormatFloat(*bound, 'f', -1, 64), 10, 64)
			if err != nil || i < n.low || i > n.high {
				return bound
			}
		}
	}
	return nil
}

// narrow narrows numbers to those that value validations allow. It compares an integer with the
// whole part of an exclusive bound, as upstream does.
func (n *numbers) narrow(v valueValidation) {
	if m := v.Minimum; m != nil {
		if *m > n.least || *m == n.least && v.ExclusiveMinimum {
			n.least, n.openLow = *m, v.ExclusiveMinimum
		}
		if v.ExclusiveMinimum {
			n.low = max(n.low, toInteger(*m)+1)
		} else {
			n.low = max(n.low, toInteger(math.Ceil(*m)))
		}
	}
	if m := v.Maximum; m != nil {
		if *m < n.most || *m == n.most && v.ExclusiveMaximum {
			n.most, n.openUp = *m, v.ExclusiveMaximum
		}
		if v.ExclusiveMaximum {
			n.high = min(n.high, toInteger(*m)-1)
		} else {
			n.high = min(n.high, toInteger(math.Floor(*m)))
		}
	}
	if m := v.MultipleOf; m != nil {
		n.steps = append(n.steps, *m)
		switch step := int64(*m); {
		case step <= 0:
			n.low, n.high = math.MaxInt64, math.MinInt64
		case n.step > math.MaxInt64/step:
			n.step = math.MaxInt64 // only zero remains
		case n.step%step != 0:
			n.step *= step
		}
	}
}

// toInteger returns the whole part of a number, or for one beyond int64, nearly the end of int64.
func toInteger(f float64) int64 { return int64(max(-1<<63+1<<10, min(f, 1<<63-1<<10))) }

// edge returns a number next to a bound in one of four cases, if there is one.
func (n *numbers) edge(draw uint64) (float64, bool) {
	if len(n.edges) == 0 || draw/unit < named || scatter(draw, 3)%4 > 0 {
		return 0, false
	}
	return n.edges[scatter(draw, 4)%uint64(len(n.edges))], true
}

// multiples returns the least and the greatest factor of step that makes an allowed integer.
func (n *numbers) multiples() (low, high int64) {
	low, high = n.low/n.step, n.high/n.step
	if low*n.step < n.low {
		low++
	}
	if high*n.step > n.high {
		high--
	}
	return low, high
}

func (n *numbers) noInteger() bool {
	low, high := n.multiples()
	return n.low > n.high || low > high
}

func (n *numbers) integer(draw uint64) int64 {
	if f, ok := n.edge(draw); ok {
		return int64(f)
	}
	low, high := n.multiples()
	return integer(draw, low, high) * n.step
}

// integer returns an integer between two others, and for a draw of zero the one nearest to zero.
// The bounds and small integers are more frequent than the rest.
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
	case f < 0.72: // -1 often stands for no limit
		return least - 1
	default:
		return least - int64(along(0.1+(f-0.67)/0.33*0.9, draw, down))
	}
}

// along returns a number up to n that rises with f.
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

// number returns a number that may not be allowed.
func (n *numbers) number(draw uint64) float64 {
	if f, ok := n.edge(draw); ok {
		return f
	}
	least := min(max(0, n.least), n.most)
	if len(n.steps) > 0 {
		step := n.steps[0]
		low, high := math.Ceil(max(n.least, -1e18)/step), math.Floor(min(n.most, 1e18)/step)
		k := integer(draw, int64(max(low, -1<<53)), int64(min(high, 1<<53)))
		// no more digits than the step has: not 0.30000000000000004
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(k)*step, 'g', 15, 64), 64)
		return f
	}
	if x := draw / unit; x < named {
		switch f := float64(x); {
		case n.allowed(least + f):
			return least + f
		case n.allowed(least - f):
			return least - f
		case n.openLow && least == n.least && n.most-n.least < 1:
			return n.least + (n.most-n.least)/2
		}
	}
	low, high := max(n.least, -1<<63), min(n.most, 1<<63)
	whole := float64(integer(draw, toInteger(math.Ceil(low)), toInteger(math.Floor(high))))
	rest := float64(scatter(draw, 2)>>11) / (1 << 53)
	switch scatter(draw, 1) % 8 {
	case 0, 1:
		return whole + math.Floor(rest*8)/8
	case 2:
		return max(low, -1e6) + rest*(min(high, 1e6)-max(low, -1e6))
	case 3:
		return math.Copysign(math.Exp2((rest-0.5)*200), whole)
	}
	return whole
}

func (n *numbers) allowed(f float64) bool {
	return (f > n.least || f == n.least && !n.openLow) && (f < n.most || f == n.most && !n.openUp)
}

// jsonNumber returns a number as Kubernetes reads it from JSON.
func jsonNumber(f float64) any {
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return f
}

// Integer returns an integer of this many bits: zero for zero. The smallest and the largest are
// more frequent than others.
func Integer(draw uint64, bits int) int64 {
	return integer(draw, math.MinInt64>>(64-bits), math.MaxInt64>>(64-bits))
}

// Float returns a number of this many bits, whole or not: zero for zero.
func Float(draw uint64, bits int) float64 {
	most := math.MaxFloat64
	if bits == 32 {
		most = math.MaxFloat32
	}
	n := numbers{least: -most, most: most, step: 1}
	return n.number(draw)
}

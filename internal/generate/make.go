package generate

import (
	"errors"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/choices"
)

// maker makes values of draws.
type maker struct {
	*choices.Source
	left   int     // values that may be made
	deep   int     // the number of searches around this one
	budget float64 // the largest number of leaves of the current value
	plan   *Plan   // the leaves and lists that the value should have; nil for none
	// texts has the last text at each path, or is nil if texts are not repeated.
	texts map[string]string
}

// Again reports whether a draw repeats the last text at the same path, so that elements of a list
// share a text, such as a name.
func Again(draw uint64) bool { return draw/unit >= named && scatter(draw, 3)%4 == 0 }

// maxValues bounds the work for an object.
const maxValues = 1 << 15

var errTooMuchWork = errors.New("too much work: the schema's anyOf, oneOf and not are hard to satisfy")

func newMaker(from *choices.Source) *maker {
	return &maker{Source: from, left: maxValues, budget: usualBudget}
}

// with calls do with a maker that has another source of draws.
func (m *maker) with(from *choices.Source, do func(m *maker)) {
	other := *m
	other.Source, other.deep = from, m.deep+1
	do(&other)
	m.left = other.left
}

// within calls do with the budget of a part of the value.
func (m *maker) within(budget float64, do func()) {
	before := m.budget
	m.budget = budget
	do()
	m.budget = before
}

func (m *maker) value(n *node) (any, error) {
	if n.err != nil {
		return nil, n.err
	}
	if m.left--; m.left < 0 {
		return nil, errTooMuchWork
	}
	if n.nullable {
		if draw := m.Uint64(); draw/unit >= named && fraction(draw) > 0.8 {
			return nil, nil
		}
	}
	if n.search || len(n.variants) > 0 {
		return m.find(n)
	}
	return m.unchecked(n)
}

// tries bounds the values that are made until one passes a check.
const tries = 64

// find makes a value that passes the check of the node. If the drawn one does not, the numbers for
// others are a function of one draw, so that nothing more is drawn.
func (m *maker) find(n *node) (any, error) {
	which := m.Uint64()
	value, err := m.variant(n, which)
	if err == nil && n.accepts(value) {
		return value, nil
	}
	for try := range tries >> (2 * m.deep) { // fewer within another search, which repeats them
		if try >= 4 {
			which = scatter(which, try)
		}
		m.with(choices.New(which, "", try), func(m *maker) { value, err = m.variant(n, which) })
		if err == nil && n.accepts(value) {
			return value, nil
		}
	}
	if err == nil {
		err = n.fault(fmt.Errorf("value validations: %d values tried, none is accepted", 1+tries>>(2*m.deep)))
	}
	return nil, err
}

func (m *maker) variant(n *node, which uint64) (any, error) {
	if len(n.variants) == 0 {
		return m.unchecked(n)
	}
	return m.value(n.variants[pick(which, len(n.variants))])
}

// unchecked makes a value that may not pass the node's check.
func (m *maker) unchecked(n *node) (any, error) {
	switch {
	case n.constants != nil:
		return runtime.DeepCopyJSONValue(n.constants[pick(m.Uint64(), len(n.constants))]), nil
	case n.kind == kindObject:
		return m.object(n)
	case n.kind == kindArray:
		return m.array(n)
	case n.kind == kindMetadata:
		return m.metadata(n)
	case n.kind == kindAny:
		return m.anything(n.maxDepth), nil
	}
	draw := m.Uint64()
	integer := n.kind == kindInteger || n.kind == kindIntOrString && (n.onlyInt || !n.onlyText && draw/unit%2 == 0)
	switch {
	case n.kind == kindBoolean:
		return pick(draw, 2) == 1, nil
	case n.kind == kindNumber:
		return n.number(draw)
	case integer:
		return n.numbers.integer(draw), nil
	}
	if before, ok := m.texts[n.path]; ok && Again(draw) {
		return before, nil
	}
	if s, ok := n.texts.text(draw); ok {
		if m.texts != nil {
			m.texts[n.path] = s
		}
		return s, nil
	}
	return nil, n.fault(errors.New("no string is found for these lengths, pattern and format"))
}

func (n *node) number(draw uint64) (any, error) {
	for try := range tries {
		f := n.numbers.number(bump(draw, try))
		if v := jsonNumber(f); n.numbers.allowed(f) && n.accepts(v) {
			return v, nil
		}
	}
	return nil, n.fault(fmt.Errorf("%d numbers tried, none is accepted", tries))
}

// Anything makes a value of any type that JSON has, up to a depth: an empty text for zeros.
func Anything(src *choices.Source, depth int) any { return newMaker(src).anything(depth) }

// anything makes a value of any type up to a depth, but null only within another value. At depth
// zero, objects have no fields, because pruning drops them below additionalProperties: true.
func (m *maker) anything(depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	part := func() (v any) {
		m.Part(func() {
			if pick(m.Uint64(), 12) < 11 {
				v = m.anything(depth - 1)
			}
		})
		return v
	}
	switch pick(m.Uint64(), kinds) {
	case 0:
		return ""
	case 1:
		s, _ := free.text(m.Uint64())
		return s
	case 2:
		return integer(m.Uint64(), math.MinInt64, math.MaxInt64)
	case 3:
		return pick(m.Uint64(), 2) == 1
	case 4:
		return jsonNumber(float64(integer(m.Uint64(), -1<<50, 1<<50)) / 1024)
	case 5:
		list := []any{}
		for range count(m.Uint64(), 0, 3, nil) {
			list = append(list, part())
		}
		return list
	default:
		object := map[string]any{}
		for range count(m.Uint64(), 0, 3, nil) {
			m.Part(func() {
				name := "x" + Word(m.Uint64()/unit%(26*26))
				object[name] = part()
			})
		}
		return object
	}
}

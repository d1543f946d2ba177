package generate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
)

// maker makes values of choices. It draws the choices that have not been drawn.
type maker struct {
	next   source                                  // nil for zeros
	left   int                                     // draws
	work   int                                     // values that may be made
	deep   int                                     // searches that this one is within
	repair func(n *node, c *choice, value any) any // nil for none
}

const (
	// maxDraws bounds the size of an object: zeros make the least value.
	maxDraws = 1 << 13
	maxWork  = 1 << 15
)

var errTooMuchWork = errors.New("too much work: the schema's anyOf, oneOf and not are hard to satisfy")

// source is a source of draws. The draws of f are for a part of the value.
type source interface {
	Uint64() uint64
	Part(f func())
}

func newMaker(next source) *maker { return &maker{next: next, left: maxDraws, work: maxWork} }

func (m *maker) draw(c *choice) uint64 {
	if !c.drawn {
		if c.drawn = true; m.next != nil && m.left > 0 {
			m.left--
			c.draw = m.next.Uint64()
		}
	}
	return c.draw
}

// part makes a part of a value.
func (m *maker) part(f func()) {
	if m.next == nil {
		f()
	} else {
		m.next.Part(f)
	}
}

// with calls do with a maker that has another source of draws.
func (m *maker) with(next source, do func(m *maker)) {
	other := &maker{next: next, left: maxDraws / 8, work: m.work, deep: m.deep + 1}
	do(other)
	m.work = other.work
}

func (m *maker) value(n *node, c *choice) (any, error) {
	v, err := m.unrepaired(n, c)
	if m.repair != nil && n.ruled != nil && v != nil && err == nil {
		v = m.repair(n, c, v)
	}
	return v, err
}

func (m *maker) unrepaired(n *node, c *choice) (any, error) {
	if n.err != nil {
		return nil, n.err
	}
	if m.work--; m.work < 0 {
		return nil, errTooMuchWork
	}
	if n.nullable {
		draw := m.draw(c)
		c = c.kid(0)
		if some(draw) && fraction(draw) > 0.8 {
			return nil, nil
		}
	}
	if n.search || len(n.variants) > 0 {
		return m.find(n, c)
	}
	return m.unchecked(n, c)
}

// tries bounds the values that are made until one passes a check.
const tries = 64

// find makes a value that passes the check of the node. If the choices do not, it varies them as a
// function of their draws: it draws nothing more.
func (m *maker) find(n *node, c *choice) (any, error) {
	draw := m.draw(c)
	value, err := m.variant(n, draw, c.kid(0))
	if err == nil && n.accepts(value) {
		return value, nil
	}
	for try := range tries >> (2 * m.deep) { // the outer search has as many
		rng := rand.New(rand.NewPCG(draw/unit, uint64(try)))
		// with fewer and fewer parts, and then with others
		which, kid, next := draw, c.kid(0).clone(), source(nil)
		if try%2 == 0 {
			kid.vary(rng, float64(1+try%8)/8, 0.25)
		} else {
			kid, next = &choice{}, random(draw, try, float64(4-try/2%5)/4)
		}
		if try >= 4 {
			which = scatter(draw, try)
		}
		m.with(next, func(m *maker) { value, err = m.variant(n, which, kid) })
		if err == nil && n.accepts(value) {
			return value, nil
		}
	}
	if err == nil {
		err = n.fault(fmt.Errorf("value validations: %d values tried, none is accepted", 1+tries>>(2*m.deep)))
	}
	return nil, err
}

func (m *maker) variant(n *node, draw uint64, c *choice) (any, error) {
	if len(n.variants) == 0 {
		return m.unchecked(n, c)
	}
	return m.value(n.variants[pick(draw, len(n.variants))], c)
}

// unchecked makes a value that may not pass the node's check.
func (m *maker) unchecked(n *node, c *choice) (any, error) {
	switch {
	case n.constants != nil:
		return runtime.DeepCopyJSONValue(n.constants[pick(m.draw(c), len(n.constants))]), nil
	case n.kind == kindObject:
		return m.object(n, c)
	case n.kind == kindArray:
		return m.array(n, c)
	case n.kind == kindMetadata:
		return m.metadata(n, c)
	case n.kind == kindAny:
		return m.anything(c, n.maxDepth), nil
	}
	draw := m.draw(c)
	integer := n.kind == kindInteger || n.kind == kindIntOrString && (n.onlyInt || !n.onlyText && draw/unit%2 == 0)
	switch {
	case n.kind == kindBoolean:
		return pick(draw, 2) == 1, nil
	case n.kind == kindNumber:
		return n.number(draw)
	case integer:
		return n.numbers.integer(draw), nil
	}
	if s, ok := n.texts.text(draw); ok {
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
func Anything(src *draw.Source, depth int) any { return newMaker(src).anything(&choice{}, depth) }

// anything makes a value of any type up to a depth; null only within another value. At depth zero
// there are no fields: pruning drops them below additionalProperties: true.
func (m *maker) anything(c *choice, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	kind, own := pick(m.draw(c), kinds), c.kid(0)
	part := func(i int) (v any) {
		m.part(func() {
			if pick(m.draw(c.kid(i)), 12) < 11 {
				v = m.anything(c.kid(i).kid(0), depth-1)
			}
		})
		return v
	}
	switch kind {
	case 0:
		return ""
	case 1:
		s, _ := free.text(m.draw(own))
		return s
	case 2:
		return integer(m.draw(own), math.MinInt64, math.MaxInt64)
	case 3:
		return pick(m.draw(own), 2) == 1
	case 4:
		return jsonNumber(float64(integer(m.draw(own), -1<<50, 1<<50)) / 1024)
	case 5:
		list := []any{}
		for i := range count(m.draw(own), 0, 3, nil) {
			list = append(list, part(1+i))
		}
		return list
	default:
		object := map[string]any{}
		for i := range count(m.draw(own), 0, 3, nil) {
			kid := c.kid(1 + i)
			v := part(1 + i)
			object["x"+Word(m.draw(kid.kid(1))/unit%(26*26))] = v
		}
		return object
	}
}

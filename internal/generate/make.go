package generate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// maker makes values of choices. What has not been drawn is drawn, if there is something to
// draw from, else it is zero.
type maker struct {
	next   source                                  // nil for zeros
	left   int                                     // how often it may be asked
	work   int                                     // how many values may be made
	deep   int                                     // of how many searches this is part
	repair func(n *node, c *choice, value any) any // nil for none
}

const (
	// maxDraws bounds the size of an object. Of zeros, the least is made.
	maxDraws = 1 << 13
	maxWork  = 1 << 15
)

var errTooMuchWork = errors.New("too much work: the schema's anyOf, oneOf and not are hard to satisfy")

// source is what choices are drawn from. What f draws is for a part of the value.
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

// with does something with another source of draws.
func (m *maker) with(next source, do func(m *maker)) {
	other := &maker{next: next, left: maxDraws / 8, work: m.work, deep: m.deep + 1}
	do(other)
	m.work = other.work
}

// value makes a value in which there is something at a place: the names of properties, and
// an empty one for an element, whichever.
func (m *maker) value(n *node, c *choice, place []string) (any, error) {
	v, err := m.any(n, c, place)
	if m.repair != nil && n.ruled != nil && v != nil && err == nil && len(place) == 0 {
		v = m.repair(n, c, v)
	}
	return v, err
}

func (m *maker) any(n *node, c *choice, place []string) (any, error) {
	if n.err != nil {
		return nil, n.err
	}
	if m.work--; m.work < 0 {
		return nil, errTooMuchWork
	}
	if n.nullable {
		draw := m.draw(c)
		c = c.kid(0)
		if some(draw) && fraction(draw) > 0.8 && len(place) == 0 {
			return nil, nil
		}
	}
	if n.search || len(n.variants) > 0 {
		return m.find(n, c, place)
	}
	return m.plain(n, c, place)
}

// tries is how often a value is sought that passes a check.
const tries = 64

// find makes a value that passes the check of the node. What it makes of choices that do not
// make one is a function of these choices: nothing more is drawn.
func (m *maker) find(n *node, c *choice, place []string) (any, error) {
	draw := m.draw(c)
	value, err := m.variant(n, draw, c.kid(0), place)
	if err == nil && n.accepts(value) {
		return value, nil
	}
	for try := range tries >> (2 * m.deep) { // there are as many outside
		rng := rand.New(rand.NewPCG(draw/unit, uint64(try)))
		// fewer and fewer parts, and then others
		which, kid, next := draw, c.kid(0).clone(), source(nil)
		if try%2 == 0 {
			kid.vary(rng, float64(1+try%8)/8, 0.25)
		} else {
			kid, next = &choice{}, random(draw, try, float64(4-try/2%5)/4)
		}
		if try >= 4 {
			which = scatter(draw, try)
		}
		m.with(next, func(m *maker) { value, err = m.variant(n, which, kid, place) })
		if err == nil && n.accepts(value) {
			return value, nil
		}
	}
	if err == nil {
		err = n.fault(fmt.Errorf("none of %d values is accepted by its value validations", 1+tries>>(2*m.deep)))
	}
	return nil, err
}

func (m *maker) variant(n *node, draw uint64, c *choice, place []string) (any, error) {
	if len(n.variants) == 0 {
		return m.plain(n, c, place)
	}
	return m.value(n.variants[pick(draw, len(n.variants))], c, place)
}

// plain makes a value that may not pass the node's check.
func (m *maker) plain(n *node, c *choice, place []string) (any, error) {
	if n.constants != nil {
		v := n.constants[0]
		if n.kind != kindConstant {
			v = n.constants[pick(m.draw(c), len(n.constants))]
		}
		return runtime.DeepCopyJSONValue(v), nil
	}
	switch n.kind {
	case kindObject:
		return m.object(n, c, place)
	case kindArray:
		return m.array(n, c, place)
	case kindMetadata:
		return m.metadata(n, c)
	case kindAny:
		return m.anything(c, n.maxDepth), nil
	}
	draw := m.draw(c)
	switch n.kind {
	case kindBoolean:
		return pick(draw, 2) == 1, nil
	case kindInteger:
		return n.numbers.integer(draw), nil
	case kindNumber:
		return n.number(draw)
	case kindIntOrString:
		if x := draw / unit; n.onlyInt || !n.onlyText && x%2 == 0 {
			return n.numbers.integer(draw), nil
		}
	}
	if s, ok := n.texts.text(draw); ok {
		return s, nil
	}
	return nil, n.fault(errors.New("no string is found that is of these lengths, and has its pattern and format"))
}

func (n *node) number(draw uint64) (any, error) {
	for try := range tries {
		if v := n.numbers.number(bump(draw, try)); inRange(&n.numbers, v) && n.accepts(v) {
			return v, nil
		}
	}
	return nil, n.fault(fmt.Errorf("none of %d numbers is accepted", tries))
}

func inRange(n *numbers, v any) bool {
	if i, ok := v.(int64); ok {
		return n.allowed(float64(i))
	}
	return n.allowed(v.(float64))
}

// object numbers the choices of its properties, then come those of entries, of unknown
// fields.
func (m *maker) object(n *node, c *choice, place []string) (map[string]any, error) {
	out := map[string]any{}
	wanted, rest := "", []string(nil)
	if len(place) > 0 {
		wanted, rest = place[0], place[1:]
	}
	// How many properties there will be at least, after defaulting.
	total := 0
	for _, p := range n.properties {
		if p.required || p.absent != nil || p.name == wanted {
			total++
		}
	}
	declared := func(name string) bool {
		return slices.ContainsFunc(n.properties, func(p property) bool { return p.name == name })
	}
	others := 0 // that are required
	for name := range n.required {
		if !declared(name) {
			others++
		}
	}
	total += others
	put := func(i int, p property) error {
		var below []string
		if p.name == wanted {
			below = rest
		}
		v, err := m.value(p.node, c.kid(i).kid(0), below)
		if err == nil {
			out[p.name] = v
		}
		return err
	}
	var absent []int
	for i, p := range n.properties {
		var err error
		m.part(func() {
			if p.required || p.name == wanted {
				err = put(i, p)
				return
			}
			present := some(m.draw(c.kid(i))) && p.err == nil && (p.absent != nil || total < n.mostOf)
			if !present || put(i, p) != nil {
				absent = append(absent, i)
			} else if p.absent == nil {
				total++
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, i := range absent {
		if p := n.properties[i]; len(out)+others < n.leastOf && p.err == nil && (p.absent != nil || total < n.mostOf) {
			m.part(func() {
				if put(i, p) == nil && p.absent == nil {
					total++
				}
			})
		}
	}
	if err := m.undeclared(n, c.kid(len(n.properties)), out, place, total); err != nil {
		return nil, err
	}
	if len(out) < n.leastOf {
		return nil, n.fault(fmt.Errorf("only %d of %d properties are found", len(out), n.leastOf))
	}
	return out, nil
}

// undeclared adds fields that are no properties of their own.
func (m *maker) undeclared(n *node, c *choice, out map[string]any, place []string, total int) error {
	if n.entries == nil && !n.unknown {
		return nil
	}
	make := func(i int, c *choice, place []string) (any, error) {
		if n.entries != nil {
			return m.element(n.entries, i, c, place)
		}
		return m.anything(c, 2), nil
	}
	var names []string // that must be
	for _, name := range slices.Sorted(maps.Keys(n.required)) {
		if _, ok := out[name]; !ok {
			names = append(names, name)
		}
	}
	least := max(0, n.leastOf-len(out)-len(names))
	within := len(place) > 0 && place[0] == ""
	if within && len(names) == 0 {
		least = max(least, 1)
	}
	most := n.mostOf - total // beside those required
	if n.entries != nil && n.entries.err != nil {
		most = 0
	}
	var sizes []int
	for _, size := range n.sizes {
		if extra := size - total; n.entries != nil && extra >= least {
			sizes = append(sizes, extra)
		}
	}
	extra := count(m.draw(c), least, max(least, most), sizes)
	for i := range len(names) + extra {
		var err error
		m.part(func() {
			kid, name := c.kid(i), ""
			if i < len(names) {
				name = names[i]
			} else {
				draw := bump(0, i)
				if i < dense {
					draw = m.draw(kid)
				}
				if name = n.fieldName(draw, out); name == "" {
					return
				}
			}
			var rest []string
			if within {
				rest, within = place[1:], false
			}
			var v any
			if v, err = make(i, kid.kid(0), rest); err == nil {
				out[name] = v
			}
		})
		if err != nil && i < len(names)+least {
			return err
		}
	}
	return nil
}

// fieldName is one that no field has.
func (n *node) fieldName(draw uint64, taken map[string]any) string {
	for try := range tries {
		d := bump(draw, try)
		name := "x" + word(d/unit)
		if n.entries != nil && d/unit >= named {
			switch scatter(d, 1) % 8 {
			case 0:
				name = "example.com/" + name
			case 1:
				name = phrase(rand.New(rand.NewPCG(d, 0)), 1+int(d/unit%8))
			case 2:
				name = strconv.Itoa(int(d / unit % 1000))
			}
		}
		_, is := taken[name]
		if !is && !isMeta(name) && !slices.ContainsFunc(n.properties, func(p property) bool { return p.name == name }) {
			return name
		}
	}
	return ""
}

func (m *maker) array(n *node, c *choice, place []string) ([]any, error) {
	least := n.leastOf
	var rest []string
	if len(place) > 0 {
		least, rest = max(least, 1), place[1:]
	}
	if least > n.mostOf {
		return nil, n.fault(errors.New("no element is possible"))
	}
	out := []any{}
	seen := map[string]bool{}
	total := count(m.draw(c), least, n.mostOf, n.sizes)
	for i := range total {
		var v any
		var err error
		m.part(func() { v, err = m.element(n.items, i, c.kid(i), rest) })
		if n.unique {
			for try := 1; err == nil && try <= tries && seen[n.key(v)]; try++ {
				v, err = m.another(n, c.kid(i), rest, try+max(0, i-dense))
			}
			if err == nil && seen[n.key(v)] {
				err = n.fault(fmt.Errorf("no element is found that differs from %d others", len(out)))
			}
		}
		rest = nil
		if err != nil {
			if len(out)+total-i-1 < least {
				return nil, err
			}
			continue
		}
		if n.unique {
			seen[n.key(v)] = true
		}
		out = append(out, v)
	}
	return out, nil
}

// element makes element i. Beyond the first few, those of large lists and maps are small.
func (m *maker) element(n *node, i int, c *choice, place []string) (any, error) {
	if i >= dense {
		next := m.next
		m.next = nil
		defer func() { m.next = next }()
	}
	return m.value(n, c, place)
}

// key is what must be different of an element.
func (n *node) key(element any) string {
	if n.defaults {
		element = withDefaults(element, n.source.Items)
	}
	object, ok := element.(map[string]any)
	if n.keys == nil || !ok {
		return key(element)
	}
	keys := make([]any, 0, len(n.keys))
	for _, i := range n.keys {
		v, found := object[n.items.properties[i].name]
		keys = append(keys, v, found)
	}
	return key(keys)
}

// another makes another element of choices: only the keys differ, if it has some.
func (m *maker) another(n *node, c *choice, place []string, try int) (v any, err error) {
	c = c.clone()
	if n.keys == nil {
		m.with(random(c.draw, try, 0.5), func(m *maker) {
			change(n.items, c, try)
			v, err = m.value(n.items, c, place)
		})
		return v, err
	}
	inner := c
	if n.items.search || len(n.items.variants) > 0 {
		inner = c.kid(0)
	}
	i := n.keys[try%len(n.keys)]
	p := n.items.properties[i]
	if kid := inner.kid(i); !p.required && !some(kid.draw) {
		kid.drawn, kid.draw = true, unit
	}
	change(p.node, inner.kid(i).kid(0), try)
	m.with(nil, func(m *maker) { v, err = m.value(n.items, c, place) })
	return v, err
}

// change makes the choices of a value others.
func change(n *node, c *choice, try int) {
	if n.nullable {
		c.draw = 0
		c = c.kid(0)
	}
	if n.search || len(n.variants) > 0 {
		if n.kind == kindObject || n.kind == kindArray {
			c.draw = scatter(c.draw, try)
		}
		c = c.kid(0)
	}
	switch n.kind {
	case kindObject, kindArray, kindAny:
		// to be drawn anew
		*c = choice{}
	default:
		c.drawn, c.draw = true, bump(c.draw, try)
	}
}

// anything is what JSON has, so deep; null only within. Of depth zero there are no fields:
// below a schema's additionalProperties: true, pruning would take them away.
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
			object["x"+word(m.draw(kid.kid(1))/unit%(26*26))] = v
		}
		return object
	}
}

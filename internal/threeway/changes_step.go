package threeway

import (
	"strings"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// step is one step of a path: to the member of that name or, if it selects, to a
// list element.
type step struct {
	name string
	key  string // {"name":"ham"}: the members that are keys, sorted, in canonical form
	keys string // their names, joined by zero bytes
	hash string // of an element that has no key
	nth  int    // how many elements of the same hash stand before it
	at   int    // where it stood in B
}

// content returns the selector by content alone.
func (s step) content() step {
	s.at = 0
	return s
}

func (s step) selects() bool { return s.key != "" || s.hash != "" }

// byKey returns selectors by key, and the zero step for elements without one.
func byKey(elements []*node, keys []string) []step {
	steps := make([]step, len(elements))
	for i, e := range elements {
		steps[i] = keyOf(e, keys)
	}
	return steps
}

// keyOf returns the selector of an element. Some of its keys may be missing, but
// not all; they are null in it.
func keyOf(element *node, keys []string) step {
	if !element.is('{') {
		return step{}
	}
	key, there := []byte{'{'}, false
	for i, name := range keys {
		value := member(element.kids, name)
		if value != nil && value.nests() {
			return step{}
		}
		if i > 0 {
			key = append(key, ',')
		}
		key = append(rawjson.AppendQuote(key, name), ':')
		if value == nil {
			key = append(key, "null"...)
		} else {
			key, there = value.appendForm(key), true
		}
	}
	if !there {
		return step{}
	}
	return step{key: string(append(key, '}')), keys: strings.Join(keys, "\x00")}
}

// byContent returns selectors by content.
func byContent(elements []*node) []step {
	steps := make([]step, len(elements))
	count := make(map[string]int, len(elements))
	for i, e := range elements {
		hash := e.hash()
		steps[i] = step{hash: hash, nth: count[hash], at: i}
		count[hash]++
	}
	return steps
}

// positions returns where the elements stand that are selected.
func positions(steps []step) map[step]int {
	index := make(map[step]int, len(steps))
	for i, s := range steps {
		if !s.selects() {
			continue
		}
		s = s.content()
		if _, twice := index[s]; twice {
			i = none
		}
		index[s] = i
	}
	return index
}

package merge

import (
	"strings"

	"github.com/crdkit/crdkit/internal/rawjson"
)

// step is one step of a path: to a member by its name, or to a list element.
type step struct {
	name string
	key  string // {"name":"ham"}: the members that are keys, sorted, in canonical form
	keys string // their names, joined by zero bytes
	at   int    // of an element without a key: one more than its index in before
}

func (s step) selects() bool { return s.key != "" || s.at > 0 }

// selectorsByKey returns selectors by key, and the zero step for elements without one.
func selectorsByKey(elements []*node, keys []string) []step {
	steps := make([]step, len(elements))
	for i, e := range elements {
		steps[i] = keyOf(e, keys)
	}
	return steps
}

// keyOf returns the selector of an element, in which missing keys are null. Not all keys may be
// missing.
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

// atIndexes returns the selectors of n elements without keys.
func atIndexes(n int) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i].at = i + 1
	}
	return steps
}

// positions returns the index of each key that is not zero, and none for a key of several elements.
func positions[K comparable](keys []K) map[K]int {
	index := map[K]int{} // without a capacity, because often few elements have a key
	for i, key := range keys {
		if _, twice := index[key]; twice {
			i = none
		}
		index[key] = i
	}
	delete(index, *new(K))
	return index
}

// hashesOf returns the hashes of elements.
func hashesOf(elements []*node) []string {
	hashes := make([]string, len(elements))
	for i, e := range elements {
		hashes[i] = e.hash()
	}
	return hashes
}

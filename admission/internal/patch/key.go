package patch

import (
	"bytes"
	"slices"
)

// named are the members by which list elements are told apart where nobody has said
// which, in order of preference: the merge keys of Kubernetes' own types. The first
// name of a key must be there, the rest may be absent.
var named = [...][]string{
	{"name"}, {"key"}, {"id"}, {"uid"}, {"type"}, {"ip"}, {"mountPath"}, {"devicePath"},
	{"containerPort", "protocol"}, {"port", "protocol"},
}

// key is what some members say about which element is which.
type key struct {
	names []string
	value func(r *reader, n *node, names []string) []byte // nil if n does not have it
	// Of each element that is free, the index on the other side of the one with the
	// same value, or none.
	from, to []int
	full     bool // whether every element has it
	twice    bool // whether two elements after share a value
}

// byKey pairs elements of equal keys, and reports whether all others are different
// ones. If it does not, apart knows which are.
//
// What has been said is believed. Else the list's key is the first of the named ones
// that every element of before has, each another one, and no two after the same. Else it
// is guessed: every string may be the key that all elements have, each another one.
func (m *matcher) byKey() bool {
	if m.said != nil {
		m.bySaid()
		return false
	}
	for _, names := range named {
		k, ok := m.look(names, namedValue, 0)
		switch {
		case !ok:
		case k.twice: // it tells elements apart, and no more
			k.from, k.to = nil, nil
			m.keys = append(m.keys, k)
		default:
			for j, i := range k.from {
				if i != none && !m.apart(i, j) {
					m.pair(i, j)
				}
			}
			return true
		}
	}
	return m.byString()
}

// bySaid pairs the elements that have the said key, if only one on each side has that
// value. An object need not be valid yet, so that others may be there twice.
func (m *matcher) bySaid() {
	m.texts.reset(len(m.before) + len(m.after))
	most := len(m.before) + len(m.after)
	first, befores, afters := m.ints.take(most), m.ints.take(most), m.ints.take(most) // of each value
	for i, b := range m.before {
		if m.to[i] == none {
			n, _ := m.texts.add(saidValue(m.reader, b, m.said))
			first[n] = i
			befores[n]++
		}
	}
	of := m.ints.take(len(m.after))
	for j, a := range m.after {
		if m.from[j] == none {
			of[j], _ = m.texts.add(saidValue(m.reader, a, m.said))
			afters[of[j]]++
		}
	}
	for j, n := range of {
		if m.from[j] == none && befores[n] == 1 && afters[n] == 1 {
			m.pair(first[n], j)
		}
	}
}

// byString pairs elements by the strings that may be the key of the list. All of them
// must agree: which of two is edited, and which is the key, nobody can know, and what
// is unknown in an element is better lost than given to another.
func (m *matcher) byString() (done bool) {
	start, names := len(m.keys), m.strings()
	if len(names)*max(len(m.before), len(m.after)) > maxWork {
		return true
	}
	for _, name := range names {
		if k, ok := m.look([]string{name}, stringValue, 1); ok && !k.twice {
			m.keys = append(m.keys, k)
		}
	}
	keys := m.keys[start:]
	best := slices.IndexFunc(keys, func(k key) bool { return k.full })
	if best < 0 {
		return false
	}
	for j, i := range keys[best].from {
		if i != none && !slices.ContainsFunc(keys, func(k key) bool {
			return k.elsewhere(i, j) || k.full && k.from[j] != i
		}) {
			m.pair(i, j)
		}
	}
	return true
}

// strings returns the names of members that are strings in an element, if all elements
// but one may have them.
func (m *matcher) strings() []string {
	var names []string
	for _, b := range m.before[:min(2, len(m.before))] {
		if !b.is('{') {
			continue
		}
		for _, k := range m.kids(b) {
			if k.is('"') {
				names = append(names, string(k.name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// look returns what a key says. It is not ok if two elements of before share a value,
// or if more than so many lack one.
func (m *matcher) look(names []string, value func(*reader, *node, []string) []byte, mayLack int) (k key, ok bool) {
	lack := 0
	for _, b := range m.before { // before the table is made, which may be large
		if value(m.reader, b, names) == nil {
			if lack++; lack > mayLack {
				return key{}, false
			}
		} else if mayLack == 0 {
			break // there are few such keys
		}
	}
	m.texts.reset(len(m.before) + m.free())
	var place []int // of each value, if that is not its number
	if mayLack > 0 {
		place = m.ints.take(len(m.before))
	}
	lack = 0
	for i, b := range m.before {
		v := value(m.reader, b, names)
		if v == nil {
			if lack++; lack > mayLack {
				return key{}, false
			}
			continue
		}
		n, added := m.texts.add(v)
		if !added {
			return key{}, false
		}
		if place != nil {
			place[n] = i
		}
	}
	if lack == len(m.before) {
		return key{}, false
	}
	k = key{names: names, value: value, full: lack == 0}
	values := len(m.texts.all)
	k.from, k.to = m.ints.take(len(m.after)), m.ints.take(len(m.before))
	for j := range k.from {
		k.from[j] = none
	}
	for i := range k.to {
		k.to[i] = none
	}
	for j, a := range m.after {
		if m.from[j] != none { // it has the value of its pair
			continue
		}
		v := value(m.reader, a, names)
		if v == nil {
			k.full = false
			continue
		}
		n, added := m.texts.add(v)
		i := n
		if place != nil && n < values {
			i = place[n]
		}
		switch {
		case added:
		case n >= values || m.to[i] != none || k.to[i] != none:
			k.twice = true
		default:
			k.from[j], k.to[i] = i, j
		}
	}
	return k, true
}

// free returns how many elements of after are free.
func (m *matcher) free() int {
	n := 0
	for _, i := range m.from {
		if i == none {
			n++
		}
	}
	return n
}

// elsewhere reports whether the key finds one of two elements on the other side, but
// not where the other of them is.
func (k *key) elsewhere(i, j int) bool {
	return k.from != nil && (k.from[j] != none && k.from[j] != i || k.to[i] != none && k.to[i] != j)
}

// apart reports whether a key tells two free elements apart: it finds one of them
// elsewhere, or they have different values of it.
func (m *matcher) apart(i, j int) bool {
	if m.said != nil {
		return !m.alike(m.before[i], m.after[j])
	}
	return slices.ContainsFunc(m.keys, func(k key) bool {
		v, w := k.value(m.reader, m.before[i], k.names), k.value(m.reader, m.after[j], k.names)
		return k.elsewhere(i, j) || v != nil && w != nil && !bytes.Equal(v, w)
	})
}

// alike reports whether two elements differ in nothing that could be a key.
func (m *matcher) alike(b, a *node) bool {
	if m.said != nil {
		return bytes.Equal(saidValue(m.reader, b, m.said), saidValue(m.reader, a, m.said))
	}
	for _, names := range named {
		if !bytes.Equal(namedValue(m.reader, b, names), namedValue(m.reader, a, names)) {
			return false
		}
	}
	if !b.is('{') || !a.is('{') {
		return true
	}
	bs, as := m.kids(b), m.kids(a)
	for len(bs) > 0 && len(as) > 0 {
		name := first(bs, as)
		if v, w := take(&bs, name), take(&as, name); v.isKey() && w.isKey() && !v.equal(w) {
			return false
		}
	}
	return true
}

// isKey reports whether a member could be a key: an empty string is no name.
func (n *node) isKey() bool { return n.is('"') && len(n.text) > len(`""`) }

// stringValue returns the value of a key that is a string.
func stringValue(r *reader, n *node, names []string) []byte {
	if n.is('{') {
		if v := member(r.kids(n), names[0]); v.isKey() {
			return v.text
		}
	}
	return nil
}

// namedValue returns the value of a named key.
func namedValue(r *reader, n *node, names []string) (value []byte) {
	if !n.is('{') {
		return nil
	}
	members := r.kids(n)
	for i, name := range names {
		switch v := member(members, name); {
		case !v.is('"') && !v.is('0'):
			if i == 0 {
				return nil
			}
		case i == 0:
			value = v.text
		default:
			value = slices.Concat(value, []byte{','}, v.text)
		}
	}
	return value
}

// saidValue returns the value of a key that the caller has said. One that is absent is a
// value too.
func saidValue(r *reader, n *node, names []string) []byte {
	value := []byte{}
	for i, name := range names {
		var text []byte
		if n.is('{') {
			if v := member(r.kids(n), name); v != nil && !v.nests() {
				text = v.text
			}
		}
		if i == 0 {
			value = text
		} else {
			value = slices.Concat(value, []byte{','}, text)
		}
	}
	return value
}

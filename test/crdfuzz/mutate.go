package crdfuzz

import (
	"encoding/json"
	"slices"
)

// mutate changes an object in some places, and returns it.
func (m maker) mutate(v object) object {
	v = clone(v)
	for range 1 + m.Intn(3) {
		m.mutateOnce(v)
	}
	return v
}

// spot is a place in a value.
type spot struct {
	parent any // an object or a list
	key    string
	index  int
}

func (s spot) get() any {
	if o, ok := s.parent.(object); ok {
		return o[s.key]
	}
	return s.parent.([]any)[s.index]
}

func (s spot) set(v any) {
	if o, ok := s.parent.(object); ok {
		o[s.key] = v
		return
	}
	s.parent.([]any)[s.index] = v
}

// spots are all places, apiVersion, kind and metadata of the root not among them.
func spots(v any, root bool) (all []spot) {
	switch v := v.(type) {
	case object:
		for _, k := range sortedKeys(v) {
			if root && (k == "apiVersion" || k == "kind" || k == "metadata") {
				continue
			}
			all = append(append(all, spot{parent: v, key: k}), spots(v[k], false)...)
		}
	case []any:
		for i, e := range v {
			all = append(append(all, spot{parent: v, index: i}), spots(e, false)...)
		}
	}
	return all
}

func (m maker) mutateOnce(v object) {
	all := spots(v, true)
	if len(all) == 0 || m.rarely(12) {
		v[m.word(names+" spec status")] = m.anything(2)
		return
	}
	at := one(m, all...)
	was := at.get()
	parent, inObject := at.parent.(object)
	switch m.Intn(10) {
	case 0: // drop
		if inObject {
			delete(parent, at.key)
		} else {
			at.set(nil)
		}
	case 1: // rename
		if inObject {
			delete(parent, at.key)
			parent[m.word(names)] = was
		}
	case 2:
		at.set(nil)
	case 3, 4: // another value of the type
		switch was := was.(type) {
		case string:
			at.set(m.text())
		case int64, float64, json.Number:
			at.set(m.integer())
		case bool:
			at.set(!was)
		case []any:
			m.mutateList(at, was)
		case object:
			was[m.word(names)] = m.anything(1)
		}
	case 5: // another type
		at.set(m.anything(2))
	case 6: // the same number, written otherwise
		if n, ok := was.(int64); ok {
			text, _ := json.Marshal(n)
			at.set(json.Number(string(text) + m.word(".0 e0 .5 E1")))
		}
	case 7: // a key twice
		if o, ok := was.(object); ok && len(o) > 0 {
			var twice members
			for _, k := range sortedKeys(o) {
				twice = append(twice, member{k, o[k]})
			}
			again := one(m, twice...)
			if m.rarely(2) {
				again.value = m.anything(1)
			}
			at.set(append(twice, again))
		}
	case 8: // an unknown field
		if o, ok := was.(object); ok {
			o[m.word("unknown Unknown a.b "+names)] = m.anything(2)
		}
	case 9:
		if list, ok := was.([]any); ok {
			m.mutateList(at, list)
		} else if inObject {
			delete(parent, at.key)
		}
	}
}

func (m maker) mutateList(at spot, list []any) {
	list = clone(list)
	switch {
	case len(list) == 0:
		list = append(list, m.anything(1))
	case m.Intn(3) == 0:
		list = append(list, cloneAny(one(m, list...)))
	case m.Intn(2) == 0:
		i := m.Intn(len(list))
		list = slices.Delete(list, i, i+1)
	default:
		m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	at.set(list)
}

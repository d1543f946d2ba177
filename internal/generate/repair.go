package generate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/internal/choices"
)

// maxRepairs bounds how often an object is validated and repaired.
const maxRepairs = 24

// repair changes an object where validate reports errors, until it is accepted: first the value at
// the place of an error, and then the values around it. It returns the errors that remain.
func (g *Generator) repair(object map[string]any) error {
	var errs field.ErrorList
	before := map[string]int{} // the number of repairs, by place
	for range maxRepairs {
		if errs = g.validate(object); len(errs) == 0 {
			return nil
		}
		// The server evaluates rules in the order of a map. Those of a part are repaired before those
		// around it, which accept no value with a wrong part.
		slices.SortStableFunc(errs, func(a, b *field.Error) int {
			return cmp.Or(cmp.Compare(b.Field, a.Field), cmp.Compare(a.Detail, b.Detail))
		})
		changed := map[string]bool{}
		for _, err := range errs {
			if changed[err.Field] {
				continue
			}
			changed[err.Field] = true
			if !g.repairAt(object, err.Field, before[err.Field]) {
				return errs.ToAggregate()
			}
			before[err.Field]++
		}
	}
	return errs.ToAggregate()
}

// spot is a value in an object, and how it can be changed.
type spot struct {
	*node
	value  any
	set    func(value any)
	remove func() // nil if the value is required
}

// least returns the value that zeros make, or nil.
func least(n *node) any {
	v, err := newMaker(choices.Replay(nil)).value(n)
	if err != nil {
		return nil
	}
	return v
}

// repairAt repairs the value at a path and, after each failed attempt, also the next value around
// it. It reports whether there was something to change.
func (g *Generator) repairAt(object map[string]any, path string, before int) bool {
	spots := spotsTo(g.root, object, path)
	at := spots[len(spots)-1]
	if before < 2 {
		// The rules may belong to a field around the one that they blame.
		for _, s := range slices.Backward(spots) {
			if s.rules == nil {
				continue
			}
			if v, ok := s.relax(s.value); ok && key(v) != key(s.value) {
				s.set(v)
				return true
			}
		}
	}
	if before == 0 && len(spots) > 1 {
		if v := least(at.node); key(v) != key(at.value) {
			at.set(v)
			return true
		}
	}
	for _, s := range slices.Backward(spots) {
		if s.remove != nil {
			s.remove()
			return true
		}
	}
	return false
}

// spotsTo returns the values on the way to a path, as far as they exist: the root first.
func spotsTo(n *node, object map[string]any, path string) []spot {
	all := []spot{rootSpot(n, object)}
	for path != "" {
		at := all[len(all)-1]
		var next spot
		switch v := at.value.(type) {
		case map[string]any:
			var name string
			if name, path = cutMember(path, v); name == "" {
				return all
			}
			next = at.member(v, name)
		case []any:
			text, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
			i, err := strconv.Atoi(text)
			if !ok || err != nil || i >= len(v) || at.items == nil {
				return all
			}
			path, next = rest, at.element(v, i)
		}
		if next.node == nil {
			return all
		}
		all = append(all, next)
	}
	return all
}

// cutMember returns the member of an object that a path begins with, and the rest of the path. Names
// may contain dots.
func cutMember(path string, object map[string]any) (name, rest string) {
	if text, ok := strings.CutPrefix(path, "["); ok {
		name, rest, _ = strings.Cut(text, "]")
		if _, ok := object[name]; !ok {
			return "", ""
		}
		return name, rest
	}
	path = strings.TrimPrefix(path, ".")
	for candidate := range object {
		after, ok := strings.CutPrefix(path, candidate)
		if ok && (after == "" || after[0] == '.' || after[0] == '[') && len(candidate) > len(name) {
			name, rest = candidate, after
		}
	}
	return name, rest
}

func rootSpot(n *node, object map[string]any) spot {
	return spot{node: n, value: object, set: func(v any) {
		clear(object)
		maps.Copy(object, v.(map[string]any))
	}}
}

func (s spot) member(object map[string]any, name string) spot {
	out := spot{value: object[name], set: func(v any) { object[name] = v }}
	p, declared := s.property(name)
	switch {
	case declared:
		out.node = p.node
	case s.entries != nil:
		out.node = s.entries
	default:
		out.node = untyped(s.path+"[*]", true)
	}
	if !p.required {
		out.remove = func() { delete(object, name) }
	}
	return out
}

func (s spot) element(list []any, i int) spot {
	out := spot{node: s.items, value: list[i], set: func(v any) { list[i] = v }}
	if len(list) > s.leastOf {
		out.remove = func() { s.set(slices.Delete(slices.Clone(list), i, i+1)) }
	}
	return out
}

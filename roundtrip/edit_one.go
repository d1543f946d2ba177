package roundtrip

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crdkit/crdkit/internal/generate"
)

// past is what an object was before a client edited it.
type past struct {
	original []byte // in the second version of the path
	before   []byte // in the first version
	edit     string // the edit of the client, in words
}

// edits are the single edits that a client could make to an object.
type edits struct {
	draw  uint64
	goals map[string]bool // the paths that are edited first
	all   []oneEdit
}

// oneEdit is an edit of one field, or of one element of a list.
type oneEdit struct {
	order uint64
	what  func() string // called before apply
	apply func()
}

// editOne makes one edit to an object of the first version. Added parts come from another object. The
// draw orders the edits by their kinds and the paths of their fields, without indexes, so that a smaller
// object gets the same edit. The object is not changed if none of the first edits is valid.
func (s *subject) editOne(ctx context.Context, object, other []byte, draw uint64, goals map[string]bool) (edited []byte, what string, err error) {
	const tries = 4
	from, err := decodeExactly(other)
	if err != nil {
		return nil, "", err
	}
	for i := range tries {
		root, err := decodeExactly(object)
		if err != nil {
			return nil, "", err
		}
		e := edits{draw: draw, goals: goals}
		e.add("", "", s.structural(s.path[0]), root, []any{from}, nil)
		slices.SortStableFunc(e.all, func(a, b oneEdit) int { return cmp.Compare(a.order, b.order) })
		if i >= len(e.all) {
			break
		}
		what := e.all[i].what()
		e.all[i].apply()
		if edited, err = json.Marshal(root); err != nil {
			return nil, "", err
		}
		if s.accepts(ctx, edited, object) {
			return edited, what, nil
		}
	}
	return object, "", nil
}

// accepts reports whether the API server would accept an update in the first version of the path, and
// whether its Go type can decode the object.
func (s *subject) accepts(ctx context.Context, object, old []byte) bool {
	if kind := s.kind.WithVersion(s.path[0]); s.registry.Scheme().Recognizes(kind) {
		if _, err := rewrite(s.registry.Scheme(), kind, object); err != nil {
			return false
		}
	}
	if s.structural(s.path[0]) == nil {
		return true
	}
	m, err := decode(object)
	was, errOld := decode(old)
	return err == nil && errOld == nil && len(s.definition.Version(s.path[0]).ValidateUpdate(ctx, m, was)) == 0
}

// order returns a number that depends on the draw, a path and a word alone.
func (e *edits) order(path, word string) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, e.draw))
	h.Write([]byte(word + " " + path))
	return h.Sum64() * 0x9e3779b97f4a7c15
}

// one returns a number less than n.
func (e *edits) one(path, word string, n int) int { return int(e.order(path, word) >> 33 % uint64(n)) }

// can adds an edit of the value at a path. Only the text of the one that is made is needed.
func (e *edits) can(path, verb string, what func() string, apply func()) {
	order := e.order(path, verb)
	if e.goals[path] {
		order >>= 32
	}
	e.all = append(e.all, oneEdit{order, func() string { return verb + " " + what() }, apply})
}

// add adds the edits of a value with a schema, or nil. others are values that may be at the same path, and set replaces the
// value.
func (e *edits) add(path, at string, s *structuralschema.Structural, v any, others []any, set func(any)) {
	switch v := v.(type) {
	case map[string]any:
		names := maps.Clone(v)
		for _, o := range ofType[map[string]any](others) {
			maps.Copy(names, o)
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if path != "" || name != "apiVersion" && name != "kind" && name != "metadata" {
				e.addMember(path, join(at, name), s, v, name, others)
			}
		}
	case []any:
		e.addElements(path, at, s, v, others, set)
	}
}

func (e *edits) addMember(path, at string, s *structuralschema.Structural, v map[string]any, name string, others []any) {
	required := s != nil && s.ValueValidation != nil && slices.Contains(s.ValueValidation.Required, name)
	if s != nil && s.AdditionalProperties != nil {
		path += each
	} else {
		path = join(path, name)
	}
	s = property(s, name)
	var there []any
	for _, o := range ofType[map[string]any](others) {
		if other, ok := o[name]; ok {
			there = append(there, other)
		}
	}
	child, has := v[name]
	if !has {
		other := there[e.one(path, "other", len(there))]
		e.can(path, "adds", func() string { return at + ": " + textOf(other) }, func() { v[name] = other })
		return
	}
	if !required {
		e.can(path, "removes", func() string { return at }, func() { delete(v, name) })
	}
	if i := slices.IndexFunc(there, func(other any) bool { return textOf(other) != textOf(child) }); i >= 0 && parts(child) < 0 {
		e.can(path, "changes", func() string { return at + " to " + textOf(there[i]) }, func() { v[name] = there[i] })
	}
	e.add(path, at, s, child, there, func(now any) { v[name] = now })
}

func (e *edits) addElements(path, at string, s *structuralschema.Structural, v []any, others []any, set func(any)) {
	there := slices.Concat(ofType[[]any](others)...)
	i := 0
	if len(v) > 0 {
		i = e.one(path, "index", len(v))
	}
	element := func(i int) string { return at + "[" + strconv.Itoa(i) + "]" }
	if siblings := append(there, v...); len(siblings) > 0 { // elements of the other object first
		added, to := siblings[e.one(path, "other", max(len(there), 1))], e.one(path, "place", len(v)+1)
		e.can(path, "adds", func() string { return element(to) + ": " + textOf(added) }, func() { set(slices.Insert(slices.Clone(v), to, added)) })
	}
	if len(v) == 0 {
		return
	}
	rest := slices.Delete(slices.Clone(v), i, i+1)
	e.can(path, "removes", func() string { return element(i) }, func() { set(rest) })
	if len(rest) > 0 {
		if to := (i + 1 + e.one(path, "place", len(rest))) % len(v); textOf(v[to]) != textOf(v[i]) {
			e.can(path, "moves", func() string { return element(i) + " to " + element(to) }, func() { set(slices.Insert(rest, to, v[i])) })
		}
	}
	if len(there) > 0 {
		if other := there[e.one(path, "other", len(there))]; textOf(other) != textOf(v[i]) {
			e.can(path, "changes", func() string { return element(i) + " to " + textOf(other) }, func() { v[i] = other })
		}
	}
	var items *structuralschema.Structural
	if s != nil {
		items = s.Items
	}
	e.add(path+each, element(i), items, v[i], append(there, rest...), func(now any) { v[i] = now })
}

// ofType returns the values of a type.
func ofType[T any](values []any) (all []T) {
	for _, v := range values {
		if v, ok := v.(T); ok {
			all = append(all, v)
		}
	}
	return all
}

// parts returns how many members or elements a value has; -1 for a leaf.
func parts(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return -1
}

func textOf(v any) string { return string(mustEncode(v)) }

// goalsOf returns the paths that the plan of a draw is for, which may be one for lists.
func goalsOf(targets []generate.Target, draw uint64, lists bool) map[string]bool {
	if lists {
		targets = slices.DeleteFunc(slices.Clone(targets), func(t generate.Target) bool { return !t.List })
	}
	goals := map[string]bool{}
	plan := generate.PlanOf(targets, draw)
	for _, t := range targets {
		if path := t.Paths[len(t.Paths)-1]; plan.Has(path) && (!t.List || plan.Elements(path) == 2) {
			goals[path] = true
		}
	}
	return goals
}

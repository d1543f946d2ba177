package generate

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// rules are the CEL rules of a part of the schema, which can be evaluated for its value alone.
type rules struct {
	validator func() *cel.Validator
	mentioned [][]string // the fields that the rules mention, such as {spec, replicas}
	names     []string   // the texts in rules that mention metadata.name
}

var (
	mentions = regexp.MustCompile(`\bself((?:\.\??[a-zA-Z_][a-zA-Z0-9_]*)+)`)
	quoted   = regexp.MustCompile(`'[^'\\]+'|"[^"\\]+"`)
)

// rulesOf returns nil for a schema without rules.
func rulesOf(path string, s *structuralschema.Structural) *rules {
	if len(s.XValidations) == 0 {
		return nil
	}
	r := &rules{validator: sync.OnceValue(func() *cel.Validator {
		return cel.NewValidator(s, path == "", celconfig.PerCallLimit)
	})}
	for _, rule := range s.XValidations {
		for _, m := range mentions.FindAllStringSubmatch(rule.Rule, -1) {
			path := strings.Split(strings.ReplaceAll(m[1][1:], "?", ""), ".")
			for i, name := range path {
				path[i] = FieldName(name)
			}
			same := func(p []string) bool { return slices.Equal(p, path) }
			if !slices.ContainsFunc(r.mentioned, same) {
				r.mentioned = append(r.mentioned, path)
			}
			if len(path) > 1 && path[0] == "metadata" && path[1] == "name" {
				for _, text := range quoted.FindAllString(rule.Rule, -1) {
					r.names = append(r.names, text[1:len(text)-1])
				}
			}
		}
	}
	return r
}

// FieldName returns the name of a field that a rule may escape: namespace is __namespace__ there.
func FieldName(ident string) string {
	if name, escaped := apiservercel.Unescape(ident); escaped {
		return name
	}
	return ident
}

// obeys reports whether the rules of a node and those below it accept a value.
func (n *node) obeys(value any) bool {
	if n.defaults {
		value = withDefaults(value, n.source)
	}
	errs, _ := n.rules.validator().Validate(context.Background(), nil, n.source, value, nil, celconfig.RuntimeCELCostBudget)
	return len(errs) == 0
}

// maxRelaxed bounds the values that are tried in place of one that rules refuse.
const maxRelaxed = 64

// relax returns a value that the rules accept, and that differs from the given one in few places: a
// field that the rules mention, or any. ok is false if it finds none.
func (n *node) relax(value any) (_ any, ok bool) {
	left := maxRelaxed
	accepts := func(v any) bool {
		left--
		return left >= 0 && n.accepts(v) && n.obeys(v)
	}
	switch v := value.(type) {
	case map[string]any:
		return n.relaxObject(v, accepts)
	case []any:
		return n.relaxList(v, accepts)
	}
	for _, other := range n.alternatives() {
		if accepts(other) {
			return other, true
		}
	}
	return nil, false
}

func (n *node) relaxList(list []any, accepts func(any) bool) (any, bool) {
	for size := len(list) - 1; size >= n.leastOf; size = min(size-1, size*3/4) {
		if out := list[:size:size]; accepts(out) {
			return out, true
		}
	}
	return nil, false
}

// relaxObject tries changes of fields that the rules mention, then the absence of others, and at last the
// presence and the absence of all that they mention.
func (n *node) relaxObject(object map[string]any, accepts func(any) bool) (any, bool) {
	var edits []func(object map[string]any)
	for _, path := range n.rules.mentioned {
		edits = append(edits, n.edits(object, path)...)
	}
	if metadata, ok := object["metadata"].(map[string]any); ok && metadata["name"] != nil {
		for _, name := range n.rules.names {
			edits = append(edits, func(object map[string]any) { object["metadata"].(map[string]any)["name"] = name })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		mentioned := slices.ContainsFunc(n.rules.mentioned, func(p []string) bool { return p[0] == name })
		if p, ok := n.property(name); !mentioned && (!ok || !p.required) {
			edits = append(edits, func(object map[string]any) { delete(object, name) })
		}
	}
	for _, present := range []bool{true, false} {
		edits = append(edits, func(object map[string]any) {
			for _, path := range n.rules.mentioned {
				n.require(object, path[0], present)
			}
		})
	}
	for _, edit := range edits {
		out := runtime.DeepCopyJSON(object)
		if edit(out); accepts(out) {
			return out, true
		}
	}
	return nil, false
}

func (n *node) property(name string) (property, bool) {
	i := slices.IndexFunc(n.properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return property{}, false
	}
	return n.properties[i], true
}

// edits returns changes of the field at a path: other values, and its presence.
func (n *node) edits(object map[string]any, path []string) (all []func(object map[string]any)) {
	p, ok := n.property(path[0])
	if !ok || p.err != nil {
		return nil
	}
	value, present := object[p.name]
	if inner, ok := value.(map[string]any); ok && len(path) > 1 {
		for _, edit := range p.edits(inner, path[1:]) {
			all = append(all, func(object map[string]any) { edit(object[p.name].(map[string]any)) })
		}
	}
	for _, other := range p.alternatives() {
		if !present || key(other) != key(value) {
			all = append(all, func(object map[string]any) { object[p.name] = other })
		}
	}
	if present && !p.required {
		all = append(all, func(object map[string]any) { delete(object, p.name) })
	}
	return all
}

// require adds a field with its least value if it should be present, or else removes it.
func (n *node) require(object map[string]any, name string, present bool) {
	p, ok := n.property(name)
	switch _, found := object[name]; {
	case !ok || found == present:
	case present:
		if v := least(p.node); v != nil {
			object[name] = v
		}
	case !p.required:
		delete(object, name)
	}
}

// alternatives returns small values of a node, more for a scalar type than for others.
func (n *node) alternatives() (all []any) {
	tries := max(4, min(len(n.constants), 8))
	if n.properties != nil || n.entries != nil || n.items != nil {
		tries = 2
	}
	for k := range uint64(tries) {
		if v, err := newMaker(always(k * unit)).value(n); err == nil {
			all = append(all, v)
		}
	}
	return all
}

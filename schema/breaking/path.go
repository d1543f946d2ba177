package breaking

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// A path of the objects is made of steps: the names of fields, and these two.
const (
	anyItem  = "[]"
	anyValue = "[*]"
)

// pathOf writes steps as a path.
func pathOf(steps []string) string {
	var s strings.Builder
	for _, step := range steps {
		if s.Len() > 0 && step != anyItem && step != anyValue {
			s.WriteByte('.')
		}
		s.WriteString(step)
	}
	return cmp.Or(s.String(), ".")
}

func below(steps []string, step string) []string { return append(slices.Clone(steps), step) }

// propertyOf returns the schema of a field of an object, declared or not. It is nil if the
// server prunes such a field.
func propertyOf(s *structuralschema.Structural, name string) *structuralschema.Structural {
	if p, ok := s.Properties[name]; ok {
		return &p
	}
	return undeclared(s)
}

// declares reports whether a field is in the properties of a schema.
func declares(s *structuralschema.Structural, name string) bool {
	_, ok := s.Properties[name]
	return ok
}

// undeclared returns the schema of the fields that the properties do not list. It is nil if
// they are pruned. The order of the cases is that of pruning: additionalProperties come before
// x-kubernetes-preserve-unknown-fields (apiserver/schema/pruning/algorithm.go, skipPrune).
func undeclared(s *structuralschema.Structural) *structuralschema.Structural {
	a := s.AdditionalProperties
	switch {
	case a != nil && a.Structural != nil:
		return a.Structural
	case a != nil:
		return anything(false)
	case s.XPreserveUnknownFields && (s.Type == "object" || s.Type == ""):
		return anything(true)
	}
	return nil
}

// itemsOf returns the schema of the items of a list. x-kubernetes-preserve-unknown-fields of a list
// is about the fields of its items (apiserver/schema/pruning/algorithm.go, skipPrune).
func itemsOf(s *structuralschema.Structural) *structuralschema.Structural {
	if s.Items == nil {
		return anything(s.XPreserveUnknownFields)
	}
	if !s.XPreserveUnknownFields || s.Items.XPreserveUnknownFields {
		return s.Items
	}
	items := *s.Items
	items.XPreserveUnknownFields = true
	return &items
}

// anything is the schema of any value. If it does not preserve, then fields of objects are
// pruned, as those below additionalProperties: true are.
func anything(preserves bool) *structuralschema.Structural {
	s := &structuralschema.Structural{}
	s.Nullable, s.XPreserveUnknownFields = true, preserves
	return s
}

// located is a value and its place in an object.
type located struct {
	path  string // with dots alone
	keys  []any  // string or int
	value any
}

// placesOf returns the places that steps lead to.
func placesOf(value any, steps []string) (all []located) {
	if len(steps) == 0 {
		return []located{{value: value}}
	}
	visit := func(key any, child any) {
		for _, p := range placesOf(child, steps[1:]) {
			p.path = strings.TrimSuffix(fmt.Sprint(key)+"."+p.path, ".")
			p.keys = append([]any{key}, p.keys...)
			all = append(all, p)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		if steps[0] == anyValue {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(name, v[name])
			}
		} else if child, ok := v[steps[0]]; ok {
			visit(steps[0], child)
		}
	case []any:
		for i := range v {
			if steps[0] == anyItem {
				visit(i, v[i])
			}
		}
	}
	return all
}

// under reports whether a path with dots alone is another one, or below it.
func under(path, at string) bool {
	rest, ok := strings.CutPrefix(path, at)
	return ok && (at == "" || rest == "" || rest[0] == '.')
}

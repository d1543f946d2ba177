package generate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"

	"github.com/crdkit/crdkit/internal/draw"
)

// Outside makes an object that is right but for one rule of the schema, and says which rule
// at which path, such as "spec.replicas: above maximum 10"; the root is a dot. CEL rules are none of those: it
// is not known which one valid refuses an object for.
//
// It returns an error if it finds no such object.
func (g *Generator) Outside(src *draw.Source) (object map[string]any, rule string, err error) {
	which, how := src.Uint64(), src.Uint64()
	drawn, next := &choice{}, source(src)
	for i := range min(len(g.rules), maxTries) {
		rule := g.rules[(pick(which, len(g.rules))+i)%len(g.rules)]
		object, ok := g.at(slices.Concat(rule.place, rule.within), drawn, which, next)
		next = nil // they have been drawn
		if !ok {
			continue
		}
		if object, path, ok := g.spoil(object, rule, how); ok {
			return object, cmp.Or(path, ".") + ": " + rule.broken, nil
		}
	}
	return nil, "", fmt.Errorf("no object outside of the schema of %s is found for any of its %d rules", g.kind, len(g.rules))
}

// rule is one that a value at a place must obey.
type rule struct {
	place  []string // see maker.value
	within []string // what must be there in the value to break the rule
	broken string
	hidden bool // from the validator of the schema: list types and embedded objects
	// breaks makes a value that breaks the rule of one that does not, and may be changed; it
	// says also where below it. There may be others, for other draws.
	breaks func(value any, draw uint64) (broken any, where string, ok bool)
}

// spoil breaks a rule of an object, without breaking another one if possible.
func (g *Generator) spoil(object map[string]any, r rule, draw uint64) (broken map[string]any, path string, ok bool) {
	for try := range tries {
		copied := runtime.DeepCopyJSON(object)
		at, found := locate(copied, g.schema, r.place)
		if !found {
			return nil, "", false
		}
		value, where, ok := r.breaks(at.value, bump(draw, try))
		if !ok {
			continue
		}
		at.put(value)
		where = strings.TrimPrefix(at.path+where, ".")
		if r.hidden {
			return copied, where, true
		}
		here, only := g.refused(copied, where)
		if later, _ := g.refused(withDefaults(copied, g.schema).(map[string]any), where); !here || !later {
			continue
		}
		if broken == nil || only {
			broken, path = copied, where
		}
		if only {
			break
		}
	}
	return broken, path, broken != nil
}

// refused says whether an object is refused at a path, and whether only there.
func (g *Generator) refused(object map[string]any, path string) (here, only bool) {
	only = true
	for _, err := range g.checks.Validate(object).Errors {
		var v *openapierrors.Validation
		is := false
		if errors.As(err, &v) {
			is = strings.TrimPrefix(v.Name, ".") == path
		} else {
			is = strings.HasPrefix(err.Error(), `"`+path+`" `) || strings.HasSuffix(err.Error(), " in "+path)
		}
		here, only = here || is, only && is
	}
	return here, only
}

// located is a value in an object.
type located struct {
	value any
	put   func(any)
	path  string // as the validator writes it: the keys of maps are like fields
}

func locate(object map[string]any, s *structuralschema.Structural, place []string) (located, bool) {
	at := located{value: object, put: func(v any) {
		members := maps.Clone(v.(map[string]any)) // it may be the object
		clear(object)
		maps.Copy(object, members)
	}}
	for _, name := range place {
		switch v := at.value.(type) {
		case []any:
			if len(v) == 0 {
				return at, false
			}
			at = located{v[0], func(new any) { v[0] = new }, at.path + "[0]"}
			s = s.Items
		case map[string]any:
			if p, ok := s.Properties[name]; ok {
				s = &p
			} else {
				for _, key := range slices.Sorted(maps.Keys(v)) {
					if _, ok := s.Properties[key]; !ok {
						name = key
						break
					}
				}
				s = s.AdditionalProperties.Structural
			}
			value, ok := v[name]
			if !ok {
				return at, false
			}
			at = located{value, func(new any) { v[name] = new }, at.path + "." + name}
		default:
			return at, false
		}
	}
	return at, true
}

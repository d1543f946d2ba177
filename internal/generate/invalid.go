package generate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/choices"
)

// Outside makes an object that breaks a rule of the schema in one place, but not a CEL rule,
// because validate does not tell which of them refuses an object.
//
// It returns an error if it finds no such object.
func (g *Generator) Outside(src *choices.Source) (map[string]any, error) {
	which, how := src.Uint64(), src.Uint64()
	var drawn map[string]any
	var err error
	for try := range tries {
		if try%16 == 0 { // a new object, because the last one may lack all fields that have rules
			if src.Part(func() { drawn, err = g.Object(src) }); err != nil {
				return nil, err
			}
		}
		object := runtime.DeepCopyJSON(drawn)
		spots := rootSpot(g.root, object).spots(nil)
		s := spots[pick(bump(which, try/4), len(spots))]
		if !g.spoil(s, bump(how, try)) || !g.refuses(object) {
			continue
		}
		stored := runtime.DeepCopyJSON(object)
		defaulting.PruneNonNullableNullsWithoutDefaults(stored, g.schema)
		defaulting.Default(stored, g.schema)
		if g.refuses(stored) {
			return object, nil
		}
	}
	return nil, fmt.Errorf("%s: no object breaks a rule of the schema", g.kind)
}

func (g *Generator) refuses(object map[string]any) bool {
	return len(validation.ValidateCustomResource(nil, object, g.checks())) > 0 ||
		len(listtype.ValidateListSetsAndMaps(nil, g.schema, object)) > 0
}

// spots appends a value and those within that the schema describes.
func (s spot) spots(all []spot) []spot {
	all = append(all, s)
	switch v := s.value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			_, declared := s.property(name)
			if declared || s.entries != nil && s.entries.kind != kindAny {
				if !isMeta(name) || !s.source.XEmbeddedResource && s.path != "" {
					all = s.member(v, name).spots(all)
				}
			}
		}
	case []any:
		for i := range v {
			if s.items != nil {
				all = s.element(v, i).spots(all)
			}
		}
	}
	return all
}

// oddities are values most of which have the wrong type in any place.
var oddities = []any{"x", int64(1), 1.5, true, []any{}, map[string]any{}}

// spoil changes a value, most often to one of its type that ignores its value validations.
func (g *Generator) spoil(p spot, how uint64) bool {
	kind, v := scatter(how, 1)%16, cmp.Or(p.source.ValueValidation, &valueValidation{})
	free := reflect.DeepEqual(v, &valueValidation{})
	object, isObject := p.value.(map[string]any)
	list, _ := p.value.([]any)
	switch {
	case p.path == "" && free:
		return false
	case kind == 0 && p.path != "":
		p.set(nil)
	case kind <= 2 && len(list) > 0:
		p.set(append(list, runtime.DeepCopyJSONValue(list[0])))
	case kind <= 2 && isObject && len(v.Required) > 0:
		delete(object, v.Required[pick(how, len(v.Required))])
	case free || kind == 3 && p.path != "":
		p.set(runtime.DeepCopyJSONValue(oddities[pick(how, len(oddities))]))
	default:
		made, err := newMaker(choices.New(how, p.path, int(kind))).value(g.withoutValues(p))
		members, ok := made.(map[string]any)
		if err != nil || isObject != ok {
			return false
		}
		if !isObject {
			p.set(made)
			return true
		}
		kept := func(name string, _ any) bool { return p.source.XEmbeddedResource && isMeta(name) }
		maps.DeleteFunc(members, kept)
		maps.DeleteFunc(object, func(name string, v any) bool { return !kept(name, v) })
		maps.Copy(object, members)
	}
	return true
}

// withoutValues returns a node for values of a spot, without its value validations.
func (g *Generator) withoutValues(p spot) *node {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.loose[p.path] == nil {
		s := *p.source
		s.ValueValidation, s.Nullable, s.XEmbeddedResource = nil, false, false
		g.loose[p.path] = (&compiler{memo: map[string]*node{}, rules: map[string]*rules{}, edges: g.edges}).compile(p.path, &s)
	}
	return g.loose[p.path]
}

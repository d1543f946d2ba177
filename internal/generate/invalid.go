package generate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdkit/crdkit/internal/draw"
)

// Outside makes an object that breaks a rule of the schema in one place. CEL rules are not broken:
// valid does not tell which of them refuses an object.
//
// It returns an error if it finds no such object.
func (g *Generator) Outside(src *draw.Source) (map[string]any, error) {
	which, how := src.Uint64(), src.Uint64()
	var drawn map[string]any
	var err error
	for try := range tries {
		if try%16 == 0 { // the last one may have nothing that a rule is about
			if src.Part(func() { drawn, err = g.Object(src) }); err != nil {
				return nil, err
			}
		}
		object := runtime.DeepCopyJSON(drawn)
		// Other places may come and go without another choice.
		all := placesOf(nil, place{schema: g.root.source, value: object})
		p := slices.MinFunc(all, func(a, b place) int {
			return cmp.Compare(a.order(which, try/4), b.order(which, try/4))
		})
		if !g.spoil(p, bump(how, try)) || !g.refuses(object) {
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

// place is where a value is in an object.
type place struct {
	path   string // in the schema
	schema *structuralschema.Structural
	value  any
	set    func(value any) // nil at the root
}

// order returns a number to choose a place by.
func (p place) order(which uint64, try int) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(p.path))
	return scatter(hash.Sum64()^which, try)
}

// placesOf appends the place of a value and those within that have a schema.
func placesOf(all []place, p place) []place {
	all = append(all, p)
	switch v := p.value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			member, declared := p.schema.Properties[name]
			inside := place{below(p.path, name), &member, v[name], func(value any) { v[name] = value }}
			switch a := p.schema.AdditionalProperties; {
			case isMeta(name) && p.schema.XEmbeddedResource:
				continue
			case declared:
			case a == nil || a.Structural == nil:
				continue
			default:
				inside.path, inside.schema = p.path+"[*]", a.Structural
			}
			all = placesOf(all, inside)
		}
	case []any:
		for i := range v {
			if p.schema.Items != nil {
				set := func(value any) { v[i] = value }
				all = placesOf(all, place{p.path + "[*]", p.schema.Items, v[i], set})
			}
		}
	}
	return all
}

// oddities are values of which most have another type than is wanted.
var oddities = []any{"x", int64(1), 1.5, true, []any{}, map[string]any{}}

// spoil changes the value at a place, most often to one that has its type and obeys none of its
// value validations.
func (g *Generator) spoil(p place, draw uint64) bool {
	kind, v := scatter(draw, 1)%16, cmp.Or(p.schema.ValueValidation, &valueValidation{})
	free := reflect.DeepEqual(v, &valueValidation{})
	object, isObject := p.value.(map[string]any)
	list, _ := p.value.([]any)
	switch {
	case p.set == nil && free:
		return false
	case kind == 0 && p.set != nil:
		p.set(nil)
	case kind <= 2 && len(list) > 0:
		p.set(append(list, runtime.DeepCopyJSONValue(list[0])))
	case kind <= 2 && isObject && len(v.Required) > 0:
		delete(object, v.Required[pick(draw, len(v.Required))])
	case free || kind == 3 && p.set != nil:
		p.set(runtime.DeepCopyJSONValue(oddities[pick(draw, len(oddities))]))
	default:
		made, err := newMaker(random(draw, 0, float64(kind%4)/4)).value(g.withoutValues(p))
		members, ok := made.(map[string]any)
		if err != nil || isObject != ok {
			return false
		}
		if !isObject {
			p.set(made)
			return true
		}
		kept := func(name string, _ any) bool { return p.schema.XEmbeddedResource && isMeta(name) }
		maps.DeleteFunc(members, kept)
		maps.DeleteFunc(object, func(name string, v any) bool { return !kept(name, v) })
		maps.Copy(object, members)
	}
	return true
}

// withoutValues returns how values of a place are made that obey none of its value validations.
func (g *Generator) withoutValues(p place) *node {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.loose[p.path] == nil {
		s := *p.schema
		s.ValueValidation, s.Nullable, s.XEmbeddedResource = nil, false, false
		g.loose[p.path] = (&compiler{memo: map[string]*node{}, rules: map[string]*rules{}, edges: g.edges}).compile(p.path, &s, false)
	}
	return g.loose[p.path]
}

package roundtrip

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/internal/generate"
	"github.com/crdkit/crdkit/internal/jsontype"
)

// plain returns functions for the types that a type consists of: booleans, numbers and strings,
// structs, lists and maps, named or not, except for types that fill themselves. randfill itself
// rarely makes the values at which conversions fail, and does not tell which draws make which part.
func (g *typeGenerator) plain(t reflect.Type) (all []any) {
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(t.Elem())
		case reflect.Map:
			walk(t.Key())
			walk(t.Elem())
		case reflect.Struct:
			for f := range t.Fields() {
				if f.IsExported() {
					walk(f.Type)
				}
			}
		}
		pointer := reflect.PointerTo(t)
		fillsItself := pointer.Implements(reflect.TypeFor[randfill.SimpleSelfFiller]()) ||
			pointer.Implements(reflect.TypeFor[randfill.NativeSelfFiller]())
		if f := g.fillerOf(t); f != nil && !fillsItself {
			all = append(all, g.functions(t, f)...)
		}
	}
	walk(t)
	return all
}

// fillerOf returns nil if randfill is as good.
func (g *typeGenerator) fillerOf(t reflect.Type) filler {
	switch t.Kind() {
	case reflect.Bool:
		return func(v reflect.Value, c randfill.Continue) { v.SetBool(c.Intn(2) == 1) }
	case reflect.String:
		return g.fillString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value, c randfill.Continue) { v.SetInt(generate.Integer(c.Rand.Uint64(), t.Bits())) }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(v reflect.Value, c randfill.Continue) {
			v.SetUint(uint64(generate.Integer(c.Rand.Uint64(), t.Bits())))
		}
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value, c randfill.Continue) { v.SetFloat(generate.Float(c.Rand.Uint64(), t.Bits())) }
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return fillBytes
		}
		return g.bounded(t, g.fillSlice)
	case reflect.Map:
		return g.bounded(t, g.fillMap)
	case reflect.Struct:
		return g.bounded(t, g.structFiller(t))
	}
	return nil
}

func (g *typeGenerator) fillString(v reflect.Value, c randfill.Continue) {
	draw := c.Rand.Uint64()
	text, ok := g.texts[g.at.path]
	if !ok || !generate.Again(draw) {
		text = generate.Text(draw)
	}
	g.texts[g.at.path] = text
	v.SetString(text)
}

func (g *typeGenerator) fillSlice(v reflect.Value, c randfill.Continue) {
	n, some := g.length()
	if v.SetZero(); some {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
	}
	for i := range n {
		g.source.Part(func() { g.element(i, n, func() { c.Fill(v.Index(i).Addr()) }) })
	}
}

func (g *typeGenerator) fillMap(v reflect.Value, c randfill.Continue) {
	n, some := g.length()
	if v.SetZero(); some {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i := range n {
		key, value := reflect.New(v.Type().Key()), reflect.New(v.Type().Elem())
		g.source.Part(func() {
			c.Fill(key)
			g.element(i, n, func() { c.Fill(value) })
		})
		v.SetMapIndex(key.Elem(), value.Elem())
	}
}

// structFiller fills the fields of a struct.
func (g *typeGenerator) structFiller(t reflect.Type) filler {
	optional := 0
	for f := range t.Fields() {
		if k := f.Type.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Map {
			optional++
		}
	}
	return func(v reflect.Value, c randfill.Continue) {
		within := g.at
		share, inside := generate.Share(max(1, within.leaves), optional, v.NumField()-optional)
		for f, field := range v.Fields() {
			if field.CanSet() {
				g.at = place{join(within.path, jsontype.Name(f)), inside, share}
				g.source.Part(func() { c.Fill(field.Addr()) })
			}
		}
		g.at = within
	}
}

// deepest bounds how many values of a recursive type are within each other, unless they are small,
// because their number grows exponentially with several recursive fields.
const deepest = 4

// bounded fills a value of a type that may contain itself.
func (g *typeGenerator) bounded(t reflect.Type, fill filler) filler {
	return func(v reflect.Value, c randfill.Continue) {
		g.within[t]++
		defer func() { g.within[t]-- }()
		if g.within[t] <= deepest {
			fill(v, c)
		} else {
			g.source.Least(func() { fill(v, c) })
		}
	}
}

// place is where a value is filled.
type place struct {
	path   string  // of the names that JSON has
	leaves float64 // the largest number of leaves
	share  float64 // the share of objects that have it, if it is optional
}

// element fills element i of a list or map. Only the first one follows the plan, and all but the
// first few are small, because there may be many within many.
func (g *typeGenerator) element(i, of int, fill func()) {
	defer func(at place, p *generate.Plan) { g.at, g.plan = at, p }(g.at, g.plan)
	g.at.path += "[*]"
	g.at.leaves /= float64(min(of, 3))
	if i > 0 {
		g.plan = nil
	}
	if i < 3 {
		fill()
	} else {
		g.source.Least(fill)
	}
}

// some draws whether an optional value is not nil.
func (g *typeGenerator) some() bool { return g.plan.Some(g.source, g.at.path, g.at.share) }

// length draws how many elements a list or a map has, unless it is nil.
func (g *typeGenerator) length() (n int, some bool) {
	if !g.some() {
		return 0, false
	}
	draw := g.plan.Length(g.source, g.at.path, g.source.Uint64)
	if n = generate.Count(draw); draw > 0 {
		n = max(n, g.plan.Elements(g.at.path))
	}
	return n, true
}

// targetsOf appends the leaves and lists of a type, and the paths to them.
func targetsOf(t reflect.Type, path string, around []string, within []reflect.Type, all []generate.Target) []generate.Target {
	t = jsontype.Pointed(t)
	around = append(slices.Clip(around), path)
	switch {
	case slices.Contains(within, t):
	case t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).IsExported() && !jsontype.DecodesItself(t):
		for _, f := range jsontype.FieldsOf(t) {
			if f.Type != reflect.TypeFor[metav1.ObjectMeta]() && f.Struct != reflect.TypeFor[metav1.TypeMeta]() {
				all = targetsOf(f.Type, join(path, f.JSON), around, append(slices.Clip(within), t), all)
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8, t.Kind() == reflect.Map:
		isList := t.Kind() == reflect.Slice
		all = append(all, generate.Target{Paths: around, List: isList, Long: isList})
		all = targetsOf(t.Elem(), path+"[*]", around, within, all)
	default:
		all = append(all, generate.Target{Paths: around})
	}
	return all
}

// fillBytes makes text, and bytes that are not text.
func fillBytes(v reflect.Value, c randfill.Continue) {
	draw := c.Rand.Uint64()
	if v.SetZero(); draw>>33 == 0 {
		return
	}
	b := []byte(generate.Text(draw - 1<<33))
	for i := range b {
		b[i] ^= byte(draw >> 32 << 7) // in half of the texts
	}
	v.SetBytes(b)
}

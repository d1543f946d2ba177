package roundtrip

import (
	"reflect"

	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/internal/generate"
)

// plain returns functions for the types that a type consists of: booleans, numbers and
// strings, structs, lists and maps, and named ones too. randfill has its own ways, but the
// values at which conversions fail are rare in them, and it does not say which draws make
// which part. Types are left alone that fill themselves.
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
			all = append(all, functions(t, f)...)
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
		return func(v reflect.Value, c randfill.Continue) { v.SetString(generate.Text(c.Rand.Uint64())) }
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
		return g.bounded(t, func(v reflect.Value, c randfill.Continue) {
			n, some := length(c.Rand.Uint64())
			if v.SetZero(); some {
				v.Set(reflect.MakeSlice(t, n, n))
			}
			for i := range n {
				g.source.Part(func() { g.element(i, c, v.Index(i).Addr()) })
			}
		})
	case reflect.Map:
		return g.bounded(t, func(v reflect.Value, c randfill.Continue) {
			n, some := length(c.Rand.Uint64())
			if v.SetZero(); some {
				v.Set(reflect.MakeMap(t))
			}
			for i := range n {
				key, value := reflect.New(t.Key()), reflect.New(t.Elem())
				g.source.Part(func() {
					c.Fill(key)
					g.element(i, c, value)
				})
				v.SetMapIndex(key.Elem(), value.Elem())
			}
		})
	case reflect.Struct:
		return g.bounded(t, func(v reflect.Value, c randfill.Continue) {
			for _, field := range v.Fields() {
				if field.CanSet() {
					g.source.Part(func() { c.Fill(field.Addr()) })
				}
			}
		})
	}
	return nil
}

// deepest is how many values of a recursive type are within each other, unless they are
// small: with several recursive fields, their number grows exponentially.
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

// element fills element i. Beyond the first few, they are small: there may be many within
// many.
func (g *typeGenerator) element(i int, c randfill.Continue, v reflect.Value) {
	if i < 3 {
		c.Fill(v)
	} else {
		g.source.Least(func() { c.Fill(v) })
	}
}

// length is how many elements a list or a map has, unless it is nil.
func length(draw uint64) (n int, some bool) {
	if draw>>33 == 0 {
		return 0, false
	}
	return generate.Count(draw - 1<<33), true
}

// fillBytes makes text, and bytes that are not text.
func fillBytes(v reflect.Value, c randfill.Continue) {
	draw := c.Rand.Uint64()
	if v.SetZero(); draw>>33 == 0 {
		return
	}
	b := []byte(generate.Text(draw - 1<<33))
	for i := range b {
		b[i] ^= byte(draw >> 32 << 7) // of half of the texts
	}
	v.SetBytes(b)
}

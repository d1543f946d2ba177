package roundtrip

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// block is memory that a value can be changed through.
type block struct {
	from, to uintptr
	of       *place
}

// shared returns where two values have memory in common, such that a change of one changes
// the other: the paths in both, or false. Strings share nothing: they cannot be changed.
// The blocks in except do not count.
func shared(a, b any, except []block) (inA, inB string, found bool) {
	x, y := blocks(a), blocks(b)
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].to <= y[0].from:
			x = x[1:]
		case y[0].to <= x[0].from:
			y = y[1:]
		case slices.ContainsFunc(except, func(e block) bool { return e.from == x[0].from }):
			x = x[1:]
		default:
			return x[0].of.String(), y[0].of.String(), true
		}
	}
	return "", "", false
}

// blocks returns the memory of a value in the order of its addresses.
func blocks(v any) []block {
	w := memoryWalk{seen: map[uintptr]bool{}}
	w.walk(reflect.ValueOf(v), nil)
	slices.SortFunc(w.blocks, func(x, y block) int { return cmp.Compare(x.from, y.from) })
	return w.blocks
}

type memoryWalk struct {
	blocks []block
	seen   map[uintptr]bool
}

func (w *memoryWalk) walk(v reflect.Value, at *place) {
	switch v.Kind() {
	case reflect.Interface:
		w.walk(v.Elem(), at)
	case reflect.Pointer:
		if !v.IsNil() && w.add(v.Pointer(), v.Type().Elem().Size(), at) {
			w.walk(v.Elem(), at)
		}
	case reflect.Struct:
		if !mayHoldMemory(v.Type()) {
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); mayHoldMemory(f.Type()) {
				w.walk(f, &place{in: at, of: v.Type(), field: i})
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && (v.IsNil() || !w.add(v.Pointer(), uintptr(v.Cap())*v.Type().Elem().Size(), at)) {
			return
		}
		if mayHoldMemory(v.Type().Elem()) {
			at = &place{in: at, key: each}
			for i := range v.Len() {
				w.walk(v.Index(i), at)
			}
		}
	case reflect.Map:
		if v.IsNil() || !w.add(v.Pointer(), 1, at) || !mayHoldMemory(v.Type().Elem()) {
			return
		}
		for key, value := range v.Seq2() {
			name := each
			if key.Kind() == reflect.String {
				name = key.String()
			}
			w.walk(value, &place{in: at, key: name})
		}
	}
}

// add notes memory; it returns false if there is none, or if it has been seen.
func (w *memoryWalk) add(from, size uintptr, at *place) bool {
	if size == 0 || w.seen[from] {
		return false
	}
	w.seen[from] = true
	w.blocks = append(w.blocks, block{from, from + size, at})
	return true
}

// mayHoldMemory reports whether values of a type may be changed through memory that is not
// their own. Times and quantities are changed by assignment alone.
func mayHoldMemory(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Array, reflect.Struct:
		return t != timeType && t != quantityType
	}
	return false
}

// place is where a part of a value is: a field of a struct, or what a key stands for. Its path
// is made when somebody reads it, which is nearly never.
type place struct {
	in    *place
	of    reflect.Type // nil for a key
	field int
	key   string
}

func (p *place) String() string {
	switch {
	case p == nil:
		return ""
	case p.of != nil:
		return join(p.in.String(), jsonName(p.of.Field(p.field)))
	case p.key == each:
		return p.in.String() + each
	}
	return join(p.in.String(), p.key)
}

// each stands for all elements of a list, and for all members of a map, in a path.
const each = "[*]"

// jsonName is what JSON calls a field; empty for one whose fields are those of the whole.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && !f.Anonymous {
		return f.Name
	}
	return name
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

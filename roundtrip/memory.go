package roundtrip

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// block is memory that a value can be changed through.
type block struct {
	from, to uintptr
	path     string // of the value, as JSON has it
}

// shared returns where two values have memory in common, such that a change of one changes
// the other: the paths in both, or false. Strings share nothing: they cannot be changed.
// What is in except does not count.
func shared(a, b any, except []block) (inA, inB string, found bool) {
	if !overlap(a, b) {
		return "", "", false
	}
	ofA, ofB := blocks(a), blocks(b)
	slices.SortFunc(ofA, func(x, y block) int { return cmp.Compare(x.from, y.from) })
	for _, y := range ofB {
		// The blocks of one value overlap only where the value aliases itself.
		i, _ := slices.BinarySearchFunc(ofA, y, func(x, y block) int { return cmp.Compare(x.to, y.from+1) })
		known := func(x block) bool { return x.from == y.from }
		if i < len(ofA) && ofA[i].from < y.to && !slices.ContainsFunc(except, known) {
			return ofA[i].path, y.path, true
		}
	}
	return "", "", false
}

// overlap says whether two values have memory in common. Paths take most of the time, and
// there is nearly never a need for them.
func overlap(a, b any) bool {
	v, w := memoryWalk{nameless: true}, memoryWalk{nameless: true}
	v.walk(reflect.ValueOf(a), "")
	w.walk(reflect.ValueOf(b), "")
	order := func(x, y block) int { return cmp.Compare(x.from, y.from) }
	slices.SortFunc(v.blocks, order)
	slices.SortFunc(w.blocks, order)
	x, y := v.blocks, w.blocks
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].to <= y[0].from:
			x = x[1:]
		case y[0].to <= x[0].from:
			y = y[1:]
		default:
			return true
		}
	}
	return false
}

func blocks(v any) []block {
	var w memoryWalk
	w.walk(reflect.ValueOf(v), "")
	return w.blocks
}

type memoryWalk struct {
	nameless bool // there are no paths
	blocks   []block
	seen     map[uintptr]bool
}

// memoryTypes are the types that have been looked at: values of some can be changed
// through no memory but their own.
var memoryTypes sync.Map

func holdsMemory(t reflect.Type) (holds bool) {
	if known, ok := memoryTypes.Load(t); ok {
		return known.(bool)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		holds = true
	case reflect.Array:
		holds = holdsMemory(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			holds = holds || holdsMemory(t.Field(i).Type)
		}
		holds = holds && !slices.Contains(immutable, t)
	}
	memoryTypes.Store(t, holds)
	return holds
}

// These types are changed by assignment alone.
var immutable = []reflect.Type{reflect.TypeFor[time.Time](), reflect.TypeFor[resource.Quantity]()}

func (w *memoryWalk) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || !w.add(v.Pointer(), v.Type().Elem().Size(), path) {
			return
		}
		w.walk(v.Elem(), path)
	case reflect.Interface:
		w.walk(v.Elem(), path)
	case reflect.Struct:
		if !holdsMemory(v.Type()) {
			return
		}
		for i := range v.NumField() {
			name := ""
			if !w.nameless {
				name = jsonName(v.Type().Field(i))
			}
			w.walk(v.Field(i), join(path, name))
		}
	case reflect.Slice:
		if v.IsNil() || !w.add(v.Pointer(), uintptr(v.Cap())*v.Type().Elem().Size(), path) {
			return
		}
		w.elements(v, path)
	case reflect.Array:
		w.elements(v, path)
	case reflect.Map:
		if v.IsNil() || !w.add(v.Pointer(), 1, path) {
			return
		}
		if !holdsMemory(v.Type().Elem()) {
			return
		}
		for key, value := range v.Seq2() {
			name := each
			if w.nameless {
				name = ""
			} else if key.Kind() == reflect.String {
				name = key.String()
			}
			w.walk(value, join(path, name))
		}
	}
}

func (w *memoryWalk) elements(v reflect.Value, path string) {
	if !holdsMemory(v.Type().Elem()) {
		return
	}
	if path += each; w.nameless {
		path = ""
	}
	for i := range v.Len() {
		w.walk(v.Index(i), path)
	}
}

// add notes memory; it returns false if there is none, or if it has been seen.
func (w *memoryWalk) add(at, size uintptr, path string) bool {
	if size == 0 || w.seen[at] {
		return false
	}
	if w.seen == nil {
		w.seen = map[uintptr]bool{}
	}
	w.seen[at] = true
	w.blocks = append(w.blocks, block{at, at + size, path})
	return true
}

// jsonName is what JSON calls a field; empty for one whose fields are those of the whole.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" && !f.Anonymous {
		return f.Name
	}
	return name
}

// each stands for all elements of a list, and for all members of a map, in a path.
const each = "[*]"

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

package roundtrip

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// block is memory that a value can be changed through, and the path of what is in it.
type block struct {
	from, to uintptr
	path     string
}

// shared returns the paths in two values whose memory is the same, so that a change of one changes
// the other, or false. The memory of strings, which cannot be changed, and the blocks in except do
// not count.
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
			return x[0].path, y[0].path, true
		}
	}
	return "", "", false
}

// blocks returns the memory of a value in the order of its addresses.
func blocks(v any) []block {
	w := memoryWalk{seen: map[uintptr]bool{}}
	w.walk("", reflect.ValueOf(v))
	slices.SortFunc(w.blocks, func(x, y block) int { return cmp.Compare(x.from, y.from) })
	return w.blocks
}

type memoryWalk struct {
	blocks []block
	seen   map[uintptr]bool
}

func (w *memoryWalk) walk(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		w.walk(path, v.Elem())
	case reflect.Pointer:
		if !v.IsNil() && w.add(path, v.Pointer(), v.Type().Elem().Size()) {
			w.walk(path, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() { // also those that JSON does not have
			if f := v.Field(i); mayHoldMemory(v.Type()) && mayHoldMemory(f.Type()) {
				w.walk(join(path, jsontype.Name(v.Type().Field(i))), f)
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && (v.IsNil() || !w.add(path, v.Pointer(), uintptr(v.Cap())*v.Type().Elem().Size())) {
			return
		}
		if mayHoldMemory(v.Type().Elem()) {
			for i := range v.Len() {
				w.walk(path+each, v.Index(i))
			}
		}
	case reflect.Map:
		if v.IsNil() || !w.add(path, v.Pointer(), 1) || !mayHoldMemory(v.Type().Elem()) {
			return
		}
		for all := v.MapRange(); all.Next(); {
			w.walk(join(path, fmt.Sprint(all.Key())), all.Value())
		}
	}
}

// add notes memory, and returns false if there is none, or if it was noted before.
func (w *memoryWalk) add(path string, from, size uintptr) bool {
	if size == 0 || w.seen[from] {
		return false
	}
	w.seen[from] = true
	w.blocks = append(w.blocks, block{from, from + size, path})
	return true
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

// mayHoldMemory reports whether values of a type may be changed through memory that is not their
// own. Times and quantities only change by assignment.
func mayHoldMemory(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Array, reflect.Struct:
		return t != timeType && t != quantityType
	}
	return false
}

// each stands for all elements of a list, and for all members of a map, in a path.
const each = "[*]"

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

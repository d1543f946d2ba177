// Package jsondiff compares two decoded JSON values position by position. Package merge also finds
// elements that have moved.
package jsondiff

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Difference is a value that differs between two JSON values, or that only one of them has.
type Difference struct {
	Path          []any // member names (string) and element indexes (int)
	Before, After any
	Was, Is       bool // whether the value before and the value after have the path
}

// Where returns the path as text, such as spec.toppings[0].name.
func (d Difference) Where() string {
	path := ""
	for _, step := range d.Path {
		if index, ok := step.(int); ok {
			path += "[" + strconv.Itoa(index) + "]"
		} else {
			path += "." + step.(string)
		}
	}
	return strings.TrimPrefix(path, ".")
}

// Walk reports the differences in the order of their paths, with members sorted by name. Lists of
// different lengths differ as a whole.
func Walk(before, after any, report func(Difference)) { walk(nil, before, after, report) }

func walk(path []any, before, after any, report func(Difference)) {
	below := func(step any) []any { return append(slices.Clip(path), step) }
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(b)
		maps.Copy(names, a)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			was, there := b[name]
			is, stays := a[name]
			if there && stays {
				walk(below(name), was, is, report)
			} else {
				report(Difference{below(name), was, is, there, stays})
			}
		}
		return
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range b {
			walk(below(i), b[i], a[i], report)
		}
		return
	}
	if !reflect.DeepEqual(before, after) {
		report(Difference{path, before, after, true, true})
	}
}

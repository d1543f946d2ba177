package crdfuzz

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdkit/crdkit/schema"
)

// makeValid removes from a definition what the server would refuse it for, until it would accept
// it, and returns the result; nil if that does not happen.
func makeValid(definition object) (object, *apiextensionsv1.CustomResourceDefinition, error) {
	definition = clone(definition)
	for range 30 {
		crd, err := typed(definition)
		if err != nil {
			return nil, nil, err
		}
		_, err = schema.New(crd)
		if err == nil {
			return definition, crd, nil
		}
		var status *apierrors.StatusError
		if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
			return nil, nil, nil
		}
		var paths []string
		for _, c := range status.ErrStatus.Details.Causes {
			at := c.Field
			if _, of, ok := strings.Cut(c.Message, "because it is defined in "); ok {
				at = of // a composition mentions a field that the schema lacks
			}
			paths = append(paths, at)
		}
		slices.Sort(paths)
		changed := false
		for _, p := range slices.Compact(paths) {
			changed = remove(definition, p) || changed
		}
		if !changed {
			return nil, nil, nil
		}
	}
	return nil, nil, nil
}

// remove removes what a path leads to, or the nearest part of it that exists, and reports whether
// it did.
func remove(definition object, path string) bool {
	steps := split(path)
	if len(steps) < 2 || steps[0] != "spec" {
		return false
	}
	if steps[1] == "versions" {
		return removeAt(definition, steps)
	}
	// Parts that are the same in all versions are at the top.
	below := steps[1:]
	switch below[0] {
	case "validation":
		below[0] = "schema"
	case "subresources", "additionalPrinterColumns", "selectableFields":
	default:
		return false
	}
	changed := false
	for i := range definition["spec"].(object)["versions"].([]any) {
		changed = removeAt(definition, append([]string{"spec", "versions", strconv.Itoa(i)}, below...)) || changed
	}
	return changed
}

// kept are keywords that a schema needs: where one is incomplete, the schema goes with it.
var kept = []string{"openAPIV3Schema", "schema", "properties", "items", "additionalProperties"}

// removeAt is remove for a path in steps, from the root of the definition.
func removeAt(root object, steps []string) bool {
	type place struct {
		parent any
		step   string
	}
	var way []place
	at := any(root)
	for _, step := range steps {
		var next any
		switch v := at.(type) {
		case object:
			next = v[step]
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i < len(v) {
				next = v[i]
			}
		}
		if next == nil {
			break
		}
		way = append(way, place{at, step})
		at = next
		if step == "default" {
			break // an error in a default is removed with the default
		}
	}
	if len(way) < 4 {
		return false
	}
	missing := len(way) < len(steps) && way[len(way)-1].step != "default"
	if schema, ok := at.(object); ok && !missing {
		// The error is about the schema as a whole: one of its keywords goes.
		for _, word := range slices.Concat([]string{"default", "x-kubernetes-validations"}, restrictions, []string{"nullable", "x-kubernetes-list-type", "x-kubernetes-map-type"}) {
			if schema[word] != nil {
				delete(schema, word)
				return true
			}
		}
		if dropRules(schema) {
			return true
		}
	}
	last := way[len(way)-1]
	if last.step == "openAPIV3Schema" || last.step == "schema" || last.step == "versions" {
		return false
	}
	switch parent := last.parent.(type) {
	case object:
		if missing && slices.Contains(kept, last.step) && len(way) > 6 {
			last = way[len(way)-2]
			if grand, ok := last.parent.(object); ok {
				delete(grand, last.step)
				return true
			}
			return false
		}
		delete(parent, last.step)
	case []any:
		// Removing it would renumber the others.
		before := way[len(way)-2]
		list := slices.Clone(parent)
		i, _ := strconv.Atoi(last.step)
		list = slices.Delete(list, i, i+1)
		if holder, ok := before.parent.(object); ok {
			if holder[before.step] = list; len(list) == 0 {
				delete(holder, before.step)
			}
		}
	}
	return true
}

// dropRules removes the first rules that it finds in a schema, and reports whether there were any.
func dropRules(s object) bool {
	changed := false
	for _, name := range sortedKeys(s) {
		if name == "x-kubernetes-validations" {
			delete(s, name)
			return true
		}
		if below, ok := s[name].(object); ok {
			changed = dropRules(below) || changed
		}
		if changed {
			return true
		}
	}
	return false
}

// split splits a path such as a.b[0][c.d].e.
func split(path string) (steps []string) {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, rest, _ := strings.Cut(rest, "]")
			steps, path = append(steps, key), strings.TrimPrefix(rest, ".")
			continue
		}
		n := strings.IndexAny(path, ".[")
		if n < 0 {
			return append(steps, path)
		}
		steps = append(steps, path[:n])
		path = strings.TrimPrefix(path[n:], ".")
	}
	return steps
}

package rehearse

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// difference is a value that differs between two forms of an object.
type difference struct {
	path          string
	effect        Effect
	before, after any
}

// differences compares two forms of an object in one version. The schema tells fields from the
// keys of maps: any key and any index is [] in a path.
func differences(s *structuralschema.Structural, before, after map[string]any) (found []difference) {
	for _, object := range []map[string]any{before, after} {
		delete(object, "apiVersion")
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, "generation") // the server counts
		}
	}
	differ(s, "", before, after, func(d difference) { found = append(found, d) })
	return found
}

func differ(s *structuralschema.Structural, path string, before, after any, report func(difference)) {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(b)
		maps.Copy(names, a)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			at, child := step(s, path, name)
			was, there := b[name]
			is, stays := a[name]
			switch {
			case !there:
				report(difference{at, Added, nil, is})
			case !stays:
				report(difference{at, Removed, was, nil})
			default:
				differ(child, at, was, is, report)
			}
		}
		return
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		var items *structuralschema.Structural
		if s != nil {
			items = s.Items
		}
		for i := range b {
			differ(items, path+"[]", b[i], a[i], report)
		}
		return
	}
	if !reflect.DeepEqual(before, after) {
		report(difference{path, Changed, before, after})
	}
}

// step returns the path and the schema of a member. Labels and annotations have their keys.
func step(s *structuralschema.Structural, path, name string) (string, *structuralschema.Structural) {
	at := strings.TrimPrefix(path+"."+name, ".")
	if strings.ContainsAny(name, "./") {
		at = path + "['" + name + "']"
	}
	if s == nil {
		return at, nil
	}
	if child, ok := s.Properties[name]; ok {
		return at, &child
	}
	if s.AdditionalProperties != nil {
		return path + "[]", s.AdditionalProperties.Structural
	}
	return at, nil
}

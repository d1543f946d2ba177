package rehearse

import (
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/crdkit/crdkit/internal/jsondiff"
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
	jsondiff.Walk(before, after, func(d jsondiff.Difference) {
		path, at := "", s
		for _, name := range d.Path {
			if name, ok := name.(string); ok {
				path, at = step(at, path, name)
				continue
			}
			if path += "[]"; at != nil {
				at = at.Items
			}
		}
		effect := Changed
		if !d.Was {
			effect = Added
		} else if !d.Is {
			effect = Removed
		}
		found = append(found, difference{path, effect, d.Before, d.After})
	})
	return found
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

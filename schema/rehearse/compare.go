package rehearse

import (
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// contents returns what is compared of an object: neither its version nor its generation, which the server counts.
func contents(object []byte) map[string]any {
	var fields map[string]any
	_ = json.Unmarshal(object, &fields) // it is a result of package schema
	delete(fields, "apiVersion")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "generation")
	}
	return fields
}

// member returns the path and the schema of a member or element. The schema tells fields from the keys of maps: any
// key and any index is [] in a path. Labels and annotations have their keys.
func member(s *structuralschema.Structural, path string, step any) (string, *structuralschema.Structural) {
	name, isName := step.(string)
	at := strings.TrimPrefix(path+"."+name, ".")
	if strings.ContainsAny(name, "./") {
		at = path + "['" + name + "']"
	}
	switch {
	case !isName && s == nil:
		return path + "[]", nil
	case !isName:
		return path + "[]", s.Items
	case s == nil:
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

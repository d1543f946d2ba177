package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SelectableFields returns what a field selector can ask of an object: metadata.name, and
// metadata.namespace if the kind has namespaces, and the selectableFields of the version,
// by their paths without the leading dot. One without a value is empty. The object is as it
// is read in this version. The error is of a path that leads to several values
// (customresource/strategy.go, selectableFields).
func (v *Version) SelectableFields(object map[string]any) (map[string]string, error) {
	if err := v.unknown(); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	set := map[string]string{"metadata.name": u.GetName()}
	if v.namespaced() {
		set["metadata.namespace"] = u.GetNamespace()
	}
	for _, f := range v.spec.SelectableFields {
		path, err := parsePath(f.JSONPath)
		if err != nil {
			return nil, fmt.Errorf("schema: the selectable field %s: %w", f.JSONPath, err)
		}
		results, err := path.FindResults(object)
		switch {
		case err != nil:
			return nil, fmt.Errorf("schema: the selectable field %s: %w", f.JSONPath, err)
		case len(results) > 1 || len(results) == 1 && len(results[0]) > 1:
			return nil, fmt.Errorf("schema: the selectable field %s leads to several values", f.JSONPath)
		}
		name := strings.TrimPrefix(f.JSONPath, ".")
		set[name] = ""
		if len(results) == 1 && len(results[0]) == 1 {
			if value := results[0][0].Interface(); value != nil {
				set[name] = fmt.Sprint(value)
			}
		}
	}
	return set, nil
}

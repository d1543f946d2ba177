package differential

import (
	"maps"
	"strings"
)

// fill returns the object with what every object needs.
func (r *run) fill(object map[string]any, version, name, resourceVersion string) []byte {
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		return mustJSON(object)
	}
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	set := func(m map[string]any, key, value string) {
		if _, ok := m[key]; !ok && value != "" {
			m[key] = value
		}
	}
	set(object, "apiVersion", r.CRD.Spec.Group+"/"+version)
	set(object, "kind", r.CRD.Spec.Names.Kind)
	if metadata["generateName"] == nil {
		set(metadata, "name", name)
	}
	set(metadata, "resourceVersion", resourceVersion)
	object["metadata"] = metadata
	return mustJSON(object)
}

// body returns what a request sends.
func (r *run) body(c *Case, name, resourceVersion string) []byte {
	if c.Raw != "" {
		return []byte(strings.NewReplacer("NAME", name, "RESOURCEVERSION", resourceVersion, "GROUP", r.CRD.Spec.Group).Replace(c.Raw))
	}
	return r.fill(c.Object, r.version(c.Version), name, resourceVersion)
}

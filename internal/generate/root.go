package generate

import (
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func isMeta(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// root compiles the schema of a version.
func (c *compiler) root(gvk schema.GroupVersionKind, s *structuralschema.Structural) *node {
	whole := *s
	whole.Type, whole.Nullable, whole.XEmbeddedResource = "object", false, true
	out := c.compile("", &whole)
	out.fix(gvk)
	return out
}

// fix sets the apiVersion and kind of the root.
func (n *node) fix(gvk schema.GroupVersionKind) {
	for i := range n.properties {
		switch p := &n.properties[i]; p.name {
		case "apiVersion":
			p.node = constant("apiVersion", gvk.GroupVersion().String())
		case "kind":
			p.node = constant("kind", gvk.Kind)
		case "metadata":
			p.required = true
		}
	}
	for _, v := range n.variants {
		v.fix(gvk)
	}
}

func constant(path, value string) *node {
	return &node{path: path, kind: kindString, size: 1, constants: []any{value}, source: &structuralschema.Structural{}}
}

// embedded returns the apiVersion, kind and metadata of an object. See
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta.
func (c *compiler) embedded(path string, s *structuralschema.Structural, f flat) []property {
	text := func(path string, in map[string]structuralschema.Structural, name string, demands ...nestedValidation) *node {
		s, ok := in[name]
		if !ok || s.Type != "string" {
			s = structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
		}
		s.Nullable = false
		return c.compile(below(path, name), &s, demands...)
	}
	must := func(demands []nestedValidation, v valueValidation) []nestedValidation {
		return append(demands, nestedValidation{ValueValidation: v})
	}
	metadata := s.Properties["metadata"]
	of := flatten(demanding(&metadata, f.property("metadata")...))
	_, restricted := metadata.Properties["generateName"]
	const label = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	return []property{
		{name: "apiVersion", required: true, node: text(path, s.Properties, "apiVersion",
			must(f.property("apiVersion"), valueValidation{
				Pattern: `^(` + label + `(\.` + label + `)*/)?v[1-9][a-z0-9]*$`,
			})...)},
		{name: "kind", required: true, node: text(path, s.Properties, "kind",
			must(f.property("kind"), valueValidation{
				MaxLength: new(int64(63)), Pattern: `^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`,
			})...)},
		{name: "metadata", required: f.has(func(v *nestedValidation) bool { return slices.Contains(v.Required, "metadata") }), node: &node{
			path: below(path, "metadata"), kind: kindMetadata, size: 1, source: &structuralschema.Structural{},
			metadataName: text(below(path, "metadata"), metadata.Properties, "name",
				must(of.property("name"), valueValidation{Format: "k8s-long-name"})...),
			noPrefix: restricted || len(of.property("generateName")) > 0,
		}},
	}
}

package breaking

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdkit/crdkit/schema"
)

// The server looks at each property of a schema whenever it validates an object, even if
// the object does not have it. Where there are thousands, and as many changes to prove,
// that takes minutes. An object of few fields is judged faster, and just the same, by a
// definition that lacks the properties which the object does not have.

const (
	// wide is how many properties an object has for which that is worth while, and group
	// is how many changes are proven with one definition.
	wide, group = 128, 64
)

// isWide says whether some object of a version has many properties.
func isWide(s *apiextensionsv1.JSONSchemaProps) bool {
	if s == nil {
		return false
	}
	if len(s.Properties) > wide {
		return true
	}
	for _, p := range s.Properties {
		if isWide(&p) {
			return true
		}
	}
	return s.Items != nil && isWide(s.Items.Schema) || s.AdditionalProperties != nil && isWide(s.AdditionalProperties.Schema)
}

// narrower returns a search in versions that have the fields which some changes are about.
// If nothing is gained by that, it is the same search.
func (s *search) narrower(changes []*change) *search {
	if !isWide(s.was.props()) && !isWide(s.is.props()) {
		return s
	}
	names := map[string]bool{}
	for _, c := range changes {
		names[c.child] = true
		for _, step := range c.steps {
			names[step] = true
		}
	}
	now := rulesOf(s.is.structural)
	t := trimmer{keep: func(name string) bool {
		return names[name] || !isIdentifier(name) || s.rules.mention(name) || now.mention(name)
	}}
	before, err := t.definition(s.was)
	if err != nil {
		return s
	}
	after, err := t.definition(s.is)
	if err != nil {
		return s
	}
	small := *s
	small.upgrade = &upgrade{ctx: s.ctx, old: before, new: after}
	small.was, small.is = before.versions[s.was.name], after.versions[s.is.name]
	return &small
}

// isIdentifier says whether CEL rules write a name as it is.
func isIdentifier(name string) bool {
	return !slices.ContainsFunc([]rune(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// trimmer takes away properties that only matter to objects which have them.
type trimmer struct{ keep func(name string) bool }

// definition returns the definition of a version with that one alone, and with the one that
// is stored. The error is that it is no definition: something else in it, such as the default
// of an object, has a property that is gone.
func (t trimmer) definition(v *version) (*definition, error) {
	crd := *v.definition.crd
	crd.Spec.Versions = nil
	for _, spec := range v.definition.crd.Spec.Versions {
		if spec.Name != v.name && !spec.Storage {
			continue
		}
		if spec.Schema != nil && spec.Schema.OpenAPIV3Schema != nil {
			spec.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: t.schema(spec.Schema.OpenAPIV3Schema)}
		}
		spec.SelectableFields = nil // they must be in the schema, and play no part when an object is judged
		crd.Spec.Versions = append(crd.Spec.Versions, spec)
	}
	trimmed, err := schema.New(&crd)
	if err != nil {
		return nil, err
	}
	return newDefinition(trimmed), nil
}

// schema keeps a property that is required, has a default, or is mentioned in a rule or in a
// composition: those matter to objects without it. Where unknown fields are
// kept, all properties stay: one that is taken away would be an unknown field.
func (t trimmer) schema(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := *s
	needed := map[string]bool{}
	mentions(s, needed)
	out.Properties = maps.Clone(s.Properties)
	trims := len(s.Properties) > wide && s.AdditionalProperties == nil && (s.XPreserveUnknownFields == nil || !*s.XPreserveUnknownFields)
	for name, p := range s.Properties {
		if trims && !needed[name] && !t.keep(name) && p.Default == nil {
			delete(out.Properties, name)
		} else {
			out.Properties[name] = *t.schema(&p)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		items := t.schema(s.Items.Schema)
		for _, key := range s.XListMapKeys {
			if p, ok := s.Items.Schema.Properties[key]; ok {
				items.Properties[key] = p
			}
		}
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: a.Allows, Schema: t.schema(a.Schema)}
	}
	return &out
}

// mentions collects the properties that a schema or its compositions mention.
func mentions(s *apiextensionsv1.JSONSchemaProps, names map[string]bool) {
	for _, name := range s.Required {
		names[name] = true
	}
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	if s.Not != nil {
		all = append(all, *s.Not)
	}
	for i := range all {
		for name := range all[i].Properties {
			names[name] = true
		}
		mentions(&all[i], names)
	}
}

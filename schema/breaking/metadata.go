package breaking

import (
	"cmp"
	"maps"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/utils/ptr"
)

// A schema need not declare apiVersion, kind and metadata: objects have them, and the server does not
// prune them. A schema may restrict them, for example the length of names.

// maxName is the length of the longest name (apimachinery/pkg/util/validation, DNS1123SubdomainMaxLength).
const maxName = 253

// withMetadata returns a copy of the schema of an object that declares these fields, also in
// embedded resources. It returns nil for nil.
func withMetadata(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	s = declareMetadata(s)
	declareMetadataInside(s)
	names := s.Properties["metadata"].Properties
	for _, field := range []string{"name", "generateName"} {
		name := names[field] // a copy
		v := cmp.Or(name.ValueValidation, &structuralschema.ValueValidation{}).DeepCopy()
		v.MinLength = new(max(1, ptr.Deref(v.MinLength, 1)))
		if field == "name" {
			v.MaxLength = new(min(maxName, ptr.Deref(v.MaxLength, maxName)))
		}
		name.ValueValidation = v
		names[field] = name
	}
	return s
}

func declareMetadataInside(s *structuralschema.Structural) {
	declare := func(in *structuralschema.Structural) *structuralschema.Structural {
		out := *in
		if out.XEmbeddedResource {
			out = *declareMetadata(in)
		}
		declareMetadataInside(&out)
		return &out
	}
	s.Properties = maps.Clone(s.Properties)
	for name, p := range s.Properties {
		s.Properties[name] = *declare(&p)
	}
	if s.Items != nil {
		s.Items = declare(s.Items)
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		s.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: declare(a.Structural)}
	}
}

// declareMetadata is withMetadata for an object, without what is inside.
func declareMetadata(s *structuralschema.Structural) *structuralschema.Structural {
	text := structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
	declare := func(s *structuralschema.Structural, p structuralschema.Structural, names ...string) *structuralschema.Structural {
		out := *s
		out.Properties = maps.Clone(s.Properties)
		if out.Properties == nil {
			out.Properties = map[string]structuralschema.Structural{}
		}
		for _, name := range names {
			if !declares(s, name) {
				out.Properties[name] = p
			}
		}
		return &out
	}
	s = declare(s, text, "apiVersion", "kind")
	metadata := s.Properties["metadata"]
	metadata.Type, metadata.XPreserveUnknownFields = "object", true
	s.Properties["metadata"] = *declare(&metadata, text, "name", "generateName")
	return s
}

package breaking

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/utils/ptr"
)

// A schema need not declare apiVersion, kind and metadata: objects have them, and the server does not
// prune them. A schema may restrict them, for example the length of names.

// maxName is the length of the longest name (apimachinery/pkg/util/validation, DNS1123SubdomainMaxLength).
const maxName = 253

// normal returns a copy of the schema of an object that declares these fields, also in embedded resources, and lacks
// what says nothing. It returns nil for nil.
func normal(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	s = declareMetadata(s.DeepCopy())
	ignore(s)
	(&structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		if s.XEmbeddedResource {
			declareMetadata(s)
		}
		return s.XEmbeddedResource
	}}).Visit(s)
	names := s.Properties["metadata"].Properties
	for _, field := range []string{"name", "generateName"} {
		name := names[field] // a copy
		v := validationOf(&name)
		atLeast(&v.MinLength, 1)
		if field == "name" {
			v.MaxLength = new(min(maxName, ptr.Deref(v.MaxLength, maxName)))
		}
		names[field] = name
	}
	return s
}

// declareMetadata declares these fields of an object, without what is inside, and returns the schema.
func declareMetadata(s *structuralschema.Structural) *structuralschema.Structural {
	declare := func(s *structuralschema.Structural, names ...string) {
		if s.Properties == nil {
			s.Properties = map[string]structuralschema.Structural{}
		}
		for _, name := range names {
			if !declares(s, name) {
				s.Properties[name] = structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
			}
		}
	}
	declare(s, "apiVersion", "kind")
	metadata := s.Properties["metadata"]
	metadata.Type, metadata.XPreserveUnknownFields = "object", true
	declare(&metadata, "name", "generateName")
	s.Properties["metadata"] = metadata
	return s
}

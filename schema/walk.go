package schema

import (
	"fmt"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// eachSchema calls f with each schema in a definition, outer ones first, and with its path.
// What f changes stays changed
// (apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go, SchemaHas, which
// has no paths).
func eachSchema(crd *apiextensions.CustomResourceDefinition, f func(path string, s *apiextensions.JSONSchemaProps)) {
	if v := crd.Spec.Validation; v != nil {
		walkSchema("spec.validation.openAPIV3Schema", v.OpenAPIV3Schema, f)
	}
	for i := range crd.Spec.Versions {
		if v := crd.Spec.Versions[i].Schema; v != nil {
			walkSchema(fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), v.OpenAPIV3Schema, f)
		}
	}
}

func walkSchema(path string, s *apiextensions.JSONSchemaProps, f func(path string, s *apiextensions.JSONSchemaProps)) {
	if s == nil {
		return
	}
	f(path, s)
	list := func(name string, all []apiextensions.JSONSchemaProps) {
		for i := range all {
			walkSchema(path+"."+name+"["+strconv.Itoa(i)+"]", &all[i], f)
		}
	}
	named := func(name string, all map[string]apiextensions.JSONSchemaProps) {
		for key, child := range all {
			walkSchema(path+"."+name+"["+key+"]", &child, f)
			all[key] = child
		}
	}
	if s.Items != nil {
		walkSchema(path+".items", s.Items.Schema, f)
		list("items", s.Items.JSONSchemas)
	}
	list("allOf", s.AllOf)
	list("anyOf", s.AnyOf)
	list("oneOf", s.OneOf)
	walkSchema(path+".not", s.Not, f)
	named("properties", s.Properties)
	if s.AdditionalProperties != nil {
		walkSchema(path+".additionalProperties", s.AdditionalProperties.Schema, f)
	}
	named("patternProperties", s.PatternProperties)
	if s.AdditionalItems != nil {
		walkSchema(path+".additionalItems", s.AdditionalItems.Schema, f)
	}
	named("definitions", s.Definitions)
	for key, child := range s.Dependencies {
		walkSchema(path+".dependencies["+key+"]", child.Schema, f)
	}
}

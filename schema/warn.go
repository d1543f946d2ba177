package schema

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// eachWarning calls f with each warning that the server gives when it creates a definition,
// and with the field that it is about. The server gives only the words, and the same words
// only once. It does not warn of sets before 1.37.
// (apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go,
// WarningsOnCreate)
func eachWarning(crd *apiextensions.CustomResourceDefinition, f func(path, message string)) {
	compatibility := environment.DefaultCompatibilityVersion()
	eachSchema(crd, func(path string, s *apiextensions.JSONSchemaProps) {
		// Whether a format is known depends on the type. One that is wrong is a fault already.
		if slices.Contains([]string{"", "object", "array", "string", "integer", "number", "boolean"}, s.Type) {
			format := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
			for _, unknown := range validation.GetUnrecognizedFormats(format, compatibility) {
				f(path+".format", fmt.Sprintf("unrecognized format %q", unknown))
			}
		}
		if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
			if t := s.Items.Schema.Type; t == "object" || t == "array" {
				f(path+".x-kubernetes-list-type", fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", t))
			}
		}
	})
}

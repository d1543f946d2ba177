package generate

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdkit/crdkit/internal/coerce"
)

// newValidator returns the validator that the API server makes of a definition with this schema.
// The one that validation.NewSchemaValidatorFromOpenAPI makes differs: no types are in int-or-string.
func newValidator(s *structuralschema.Structural) validation.SchemaValidator {
	var props apiextensionsv1.JSONSchemaProps
	var validator validation.SchemaValidator
	text, err := json.Marshal(s.ToKubeOpenAPI())
	if err == nil {
		err = json.Unmarshal(text, &props)
	}
	if err == nil {
		_, validator, _, err = coerce.Validators(&apiextensionsv1.CustomResourceDefinitionVersion{Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}})
	}
	if err != nil {
		panic(err) // impossible, because a structural schema has such properties
	}
	return validator
}

// hasDefaults reports whether defaulting may add something within a value.
func hasDefaults(s *structuralschema.Structural) bool {
	if s == nil {
		return false
	}
	for _, p := range s.Properties {
		if p.Default.Object != nil || hasDefaults(&p) {
			return true
		}
	}
	return hasDefaults(s.Items) || s.AdditionalProperties != nil && hasDefaults(s.AdditionalProperties.Structural)
}

// withDefaults returns a copy of a value with the defaults of its schema.
func withDefaults(value any, s *structuralschema.Structural) any {
	value = runtime.DeepCopyJSONValue(value)
	defaulting.Default(value, s)
	return value
}

// normal returns a value as it is after it is written as JSON and read again.
func normal(value any) (out any) {
	if err := utiljson.Unmarshal([]byte(key(value)), &out); err != nil {
		panic(err) // impossible for JSON
	}
	return out
}

// below is a path in the form that errors have.
func below(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

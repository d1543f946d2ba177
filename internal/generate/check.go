package generate

import (
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// newValidator returns the validator of the API server for values of a schema.
func newValidator(s *structuralschema.Structural) validation.SchemaValidator {
	return validation.NewSchemaValidatorFromOpenAPI(s.ToKubeOpenAPI())
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

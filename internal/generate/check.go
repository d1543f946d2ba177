package generate

import (
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// newValidator returns what the API server validates values with.
func newValidator(s *structuralschema.Structural) *validate.SchemaValidator {
	out := s.ToKubeOpenAPI()
	likeTheServer(out)
	if v := s.ValueValidation; v != nil {
		restoreNested(v, out)
	}
	return validate.NewSchemaValidator(out, nil, "", strfmt.Default)
}

// likeTheServer makes of a converted structural schema what
// ConvertJSONSchemaPropsWithPostProcess makes of the CustomResourceDefinition's:
// https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/apiserver/validation/validation.go
func likeTheServer(s *spec.Schema) {
	if intOrString, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); intOrString {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	kind := "string"
	if len(s.Type) == 1 {
		kind = s.Type[0]
	}
	known := false
	switch kind {
	case "string":
		_, _, known = formatPattern(s.Format)
	case "integer":
		known = s.Format == "int32" || s.Format == "int64"
	case "number":
		known = s.Format == "float" || s.Format == "double"
	}
	if !known {
		s.Format = ""
	}
	each := func(of []spec.Schema) {
		for i := range of {
			likeTheServer(&of[i])
		}
	}
	each(s.AllOf)
	each(s.AnyOf)
	each(s.OneOf)
	if s.Not != nil {
		likeTheServer(s.Not)
	}
	if s.Items != nil && s.Items.Schema != nil {
		likeTheServer(s.Items.Schema)
	}
	for name, p := range s.Properties {
		likeTheServer(&p)
		s.Properties[name] = p
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		a.Allows = true
		likeTheServer(a.Schema)
	}
}

// restoreNested restores the additionalProperties of nested value validations, which
// ToKubeOpenAPI leaves out.
func restoreNested(v *structuralschema.ValueValidation, out *spec.Schema) {
	each := func(from []structuralschema.NestedValueValidation, to []spec.Schema) {
		for i := range from {
			restore(&from[i], &to[i])
		}
	}
	each(v.AllOf, out.AllOf)
	each(v.AnyOf, out.AnyOf)
	each(v.OneOf, out.OneOf)
	if v.Not != nil {
		restore(v.Not, out.Not)
	}
}

func restore(v *structuralschema.NestedValueValidation, out *spec.Schema) {
	restoreNested(&v.ValueValidation, out)
	if v.Items != nil {
		restore(v.Items, out.Items.Schema)
	}
	for name, p := range v.Properties {
		to := out.Properties[name]
		restore(&p, &to)
		out.Properties[name] = to
	}
	if a := v.AdditionalProperties; a != nil {
		wrapped := &structuralschema.Structural{ValueValidation: &structuralschema.ValueValidation{AllOf: []structuralschema.NestedValueValidation{*a}}}
		converted := &wrapped.ToKubeOpenAPI().AllOf[0]
		likeTheServer(converted)
		restore(a, converted)
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: converted}
	}
}

// hasDefaults says whether defaulting may add something within a value.
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

// withDefaults returns a value as defaulting makes it. See
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting, which this package does
// without for its dependencies.
func withDefaults(value any, s *structuralschema.Structural) any {
	if s == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, p := range s.Properties {
			if p.Default.Object != nil {
				out[name] = withDefaults(runtime.DeepCopyJSONValue(p.Default.Object), &p)
			}
		}
		for name, member := range v {
			if p, ok := s.Properties[name]; ok {
				if member == nil && !p.Nullable && p.Default.Object != nil {
					continue
				}
				out[name] = withDefaults(member, &p)
			} else if s.AdditionalProperties != nil {
				out[name] = withDefaults(member, s.AdditionalProperties.Structural)
			} else {
				out[name] = member
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withDefaults(v[i], s.Items)
		}
		return out
	default:
		return value
	}
}

// normal is a value as it is once it has been written and read again.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = normal(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case float64:
		return jsonNumber(v)
	case int:
		return int64(v)
	default:
		return value
	}
}

// below is a path in the form that errors have.
func below(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

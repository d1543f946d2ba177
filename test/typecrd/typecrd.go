// Package typecrd makes CustomResourceDefinitions of Go types, for tests and benchmarks that need a
// large schema, such as that of a pod template.
package typecrd

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/crdkit/crdkit/internal/jsontype"
)

// Of returns the definition of a namespaced kind, as JSON. All versions have the schema of one Go type, which
// is a struct with the fields spec or status. The last version is stored.
//
// Fields are required that the type always writes. Most definitions of controller-gen require fewer: a struct
// with omitempty, such as the spec of a pod template, is optional there, although it is written as {}. The
// bounds and patterns exclude what the types cannot decode.
func Of(kind schema.GroupKind, t reflect.Type, versions ...string) []byte {
	plural := strings.ToLower(kind.Kind) + "s"
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, Plural: plural},
			Scope: apiextensionsv1.NamespaceScoped,
		},
	}
	root := of(t)
	root.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
		})
	}
	text, err := json.Marshal(crd)
	if err != nil {
		panic(err) // it has nothing that JSON does not have
	}
	return text
}

// embedded are the fields that metadata within an object has in a schema.
type embedded struct {
	Name        string            `json:"name,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Finalizers  []string          `json:"finalizers,omitempty"`
}

// of returns the schema of a type, which does not contain itself.
func of(t reflect.Type) apiextensionsv1.JSONSchemaProps {
	text := func(format string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Format: format}
	}
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return apiextensionsv1.JSONSchemaProps{XIntOrString: true, Minimum: new(float64(math.MinInt32)), Maximum: new(float64(math.MaxInt32)), Pattern: `^[+-]?[0-9]{1,10}([KMG]i|[mkMG])?$`}
	case reflect.TypeFor[intstr.IntOrString]():
		return apiextensionsv1.JSONSchemaProps{XIntOrString: true, Minimum: new(float64(math.MinInt32)), Maximum: new(float64(math.MaxInt32))}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[time.Time]():
		return text("date-time")
	case reflect.TypeFor[metav1.ObjectMeta]():
		return of(reflect.TypeFor[embedded]())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem())
	case reflect.Bool:
		return apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case reflect.String:
		return text("")
	case reflect.Int32:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	case reflect.Int64:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return text("byte")
		}
		items := of(t.Elem())
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
	case reflect.Map:
		values := of(t.Elem())
		return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}}
	case reflect.Struct:
		s := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for _, f := range jsontype.FieldsOf(t) {
			s.Properties[f.JSON] = of(f.Type)
			if !f.Has("omitzero") && (!f.Has("omitempty") || f.Type.Kind() == reflect.Struct) {
				s.Required = append(s.Required, f.JSON)
			}
		}
		return s
	}
	panic(fmt.Sprintf("no schema for %s", t))
}

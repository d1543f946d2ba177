package apiserver

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// The schemas of the served versions are what controller-gen makes of the types, the same
// as in the CustomResourceDefinitions: so kubectl explains and checks the same, and
// server-side apply merges in the same way, which needs the list types. The files are whole
// definitions, because that is what controller-gen writes; they are never applied.
//
//go:embed config/schemas/*.yaml
var definitions embed.FS

// withOpenAPI gives a server the schemas of the kinds: to publish, and for server-side
// apply.
func withOpenAPI(config *server.Config, s *runtime.Scheme) error {
	schemas, err := readSchemas(s)
	if err != nil {
		return fmt.Errorf("apiserver: the schemas: %w", err)
	}
	get := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := generatedopenapi.GetOpenAPIDefinitions(ref) // those of metav1, among others
		maps.Copy(all, schemas.definitions(ref))
		return all
	}
	namer := openapi.NewDefinitionNamer(s)
	// A definition goes by the path of its Go type, and the namer knows it by the name
	// that is published: for types that say their name themselves (util.OpenAPIModelNamer),
	// as those of metav1 do, it is the same.
	name := func(definition string) (string, spec.Extensions) {
		return namer.GetDefinitionName(util.ToRESTFriendlyName(definition))
	}
	config.OpenAPIConfig = server.DefaultOpenAPIConfig(get, namer)
	config.OpenAPIConfig.GetDefinitionName = name
	config.OpenAPIConfig.Info.Title = Name
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(get, namer)
	config.OpenAPIV3Config.GetDefinitionName = name
	config.OpenAPIV3Config.Definitions = get(func(definition string) spec.Ref {
		published, _ := name(definition)
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(published))
	})
	config.OpenAPIV3Config.Info.Title = Name
	return nil
}

// schemas are those of the kinds, by the path of the Go type.
type schemas map[string]kindSchema

type kindSchema struct {
	object   spec.Schema
	list     string // the path of the type of its list
	listKind string
}

// definitions returns the schemas as a generator would write them.
func (k schemas) definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	all := map[string]common.OpenAPIDefinition{}
	objectMeta, listMeta := metav1.ObjectMeta{}.OpenAPIModelName(), metav1.ListMeta{}.OpenAPIModelName()
	for path, kind := range k {
		object := kind.object
		object.Properties = maps.Clone(object.Properties)
		object.Properties["metadata"] = *refTo(ref, objectMeta)
		all[path] = common.OpenAPIDefinition{Schema: object, Dependencies: []string{objectMeta}}

		list := spec.Schema{SchemaProps: spec.SchemaProps{
			Description: kind.listKind + " is a list of objects of one kind.",
			Type:        spec.StringOrArray{"object"},
			Required:    []string{"items"},
			Properties: map[string]spec.Schema{
				"apiVersion": object.Properties["apiVersion"],
				"kind":       object.Properties["kind"],
				"metadata":   *refTo(ref, listMeta),
				"items":      *spec.ArrayProperty(refTo(ref, path)),
			},
		}}
		all[kind.list] = common.OpenAPIDefinition{Schema: list, Dependencies: []string{listMeta, path}}
	}
	return all
}

// refTo returns a schema that refers to another. The default is what openapi-gen gives to
// a struct: without it, a field that is absent has no schema for what is in it.
func refTo(ref common.ReferenceCallback, path string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Default: map[string]any{}, Ref: ref(path)}}
}

// readSchemas reads the schemas of all versions from the definitions.
func readSchemas(s *runtime.Scheme) (schemas, error) {
	all := schemas{}
	files, err := definitions.ReadDir("config/schemas")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := definitions.ReadFile("config/schemas/" + file.Name())
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		for _, version := range crd.Spec.Versions {
			gv := runtimeschema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}
			object, objectErr := s.New(gv.WithKind(crd.Spec.Names.Kind))
			list, listErr := s.New(gv.WithKind(crd.Spec.Names.ListKind))
			if objectErr != nil || listErr != nil {
				return nil, fmt.Errorf("%s: the scheme lacks %s %s, or its list", file.Name(), gv, crd.Spec.Names.Kind)
			}
			kind := kindSchema{list: util.GetCanonicalTypeName(list), listKind: crd.Spec.Names.ListKind}
			text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(text, &kind.object); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file.Name(), version.Name, err)
			}
			all[util.GetCanonicalTypeName(object)] = kind
		}
	}
	return all, nil
}

package resource

import (
	"encoding/json"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

// OpenAPI adds the schemas of the kinds to the configuration of a server. The server publishes them
// under the title, and needs them for server-side apply to merge lists, but does not enforce their
// defaults and validation rules: use scheme.Default and [Validate]. Each element of crds is a
// CustomResourceDefinition in YAML from controller-gen, which is never applied to a cluster.
//
// OpenAPI returns an error if an element of crds is not a CustomResourceDefinition, if one of
// its versions has no schema, or if the scheme lacks one of its versions or the list.
func OpenAPI(config *server.Config, types *runtime.Scheme, title string, crds ...[]byte) error {
	kinds := schemas{}
	for i, text := range crds {
		if err := kinds.read(types, text); err != nil {
			return fmt.Errorf("resource: CustomResourceDefinition %d: %w", i+1, err)
		}
	}
	get := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := generatedopenapi.GetOpenAPIDefinitions(ref) // those of metav1, among others
		maps.Copy(all, kinds.definitions(ref))
		return all
	}
	namer := openapi.NewDefinitionNamer(types)
	// Definitions have the path of their Go type. The namer knows the published name, which is the
	// same for types that name themselves (util.OpenAPIModelNamer), such as those of metav1.
	name := func(definition string) (string, spec.Extensions) {
		return namer.GetDefinitionName(util.ToRESTFriendlyName(definition))
	}
	config.OpenAPIConfig = server.DefaultOpenAPIConfig(get, namer)
	config.OpenAPIConfig.GetDefinitionName = name
	config.OpenAPIConfig.Info.Title = title
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(get, namer)
	config.OpenAPIV3Config.GetDefinitionName = name
	config.OpenAPIV3Config.Definitions = get(func(definition string) spec.Ref {
		published, _ := name(definition)
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(published))
	})
	config.OpenAPIV3Config.Info.Title = title
	return nil
}

// schemas has the schemas of kinds by the path of the Go type.
type schemas map[string]kindSchema

type kindSchema struct {
	object   spec.Schema
	list     string // the path of the type of its list
	listKind string
}

// read adds the schemas of a CustomResourceDefinition.
func (k schemas) read(types *runtime.Scheme, text []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		gv := schema.GroupVersion{Group: crd.Spec.Group, Version: version.Name}
		object, objectErr := types.New(gv.WithKind(crd.Spec.Names.Kind))
		list, listErr := types.New(gv.WithKind(crd.Spec.Names.ListKind))
		if objectErr != nil || listErr != nil {
			return fmt.Errorf("%s: the scheme lacks %s %s, or its list", crd.Name, gv, crd.Spec.Names.Kind)
		}
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			return fmt.Errorf("%s: version %s has no schema", crd.Name, version.Name)
		}
		kind := kindSchema{list: util.GetCanonicalTypeName(list), listKind: crd.Spec.Names.ListKind}
		text, err := json.Marshal(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &kind.object); err != nil {
			return fmt.Errorf("%s: version %s: %w", crd.Name, version.Name, err)
		}
		k[util.GetCanonicalTypeName(object)] = kind
	}
	return nil
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

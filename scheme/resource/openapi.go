package resource

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	namer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OpenAPI has a server publish OpenAPI under a title. The schemas of the resources are added when the server with the
// resources of [Install] has started, as for custom resources. Without OpenAPI, the server works, but kubectl explain does not.
func OpenAPI(config *server.Config, title string) {
	names := namer.NewDefinitionNamer(runtime.NewScheme())
	config.OpenAPIConfig = server.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, names)
	config.OpenAPIConfig.Info.Title = title
	config.OpenAPIV3Config = server.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, names)
	config.OpenAPIV3Config.Info.Title = title
}

// openAPI is that of custom resources.
type openAPI struct {
	v2     []*spec.Swagger
	v3     map[schema.GroupVersion][]*spec3.OpenAPI
	models map[string]*spec.Schema // of all versions, for server-side apply
}

func buildOpenAPI(resources []*Resource) (*openAPI, error) {
	all := &openAPI{v3: map[schema.GroupVersion][]*spec3.OpenAPI{}, models: map[string]*spec.Schema{}}
	for _, r := range resources {
		for _, v := range r.crd.Spec.Versions {
			v3, err := builder.BuildOpenAPIV3(r.crd, v.Name, builder.Options{IncludeSelectableFields: true})
			v2, v2Err := builder.BuildOpenAPIV2(r.crd, v.Name, builder.Options{V2: true, IncludeSelectableFields: true})
			if err := errors.Join(err, v2Err); err != nil {
				return nil, fmt.Errorf("resource: %s: OpenAPI of version %s: %w", r.crd.Name, v.Name, err)
			}
			maps.Copy(all.models, v3.Components.Schemas)
			if gv := r.version(v.Name); v.Served {
				all.v2, all.v3[gv] = append(all.v2, v2), append(all.v3[gv], v3)
			}
		}
	}
	return all, nil
}

// publish adds the OpenAPI to that of a running server
// (apiextensions-apiserver/pkg/controller/openapi/controller.go and openapiv3/controller.go).
func (o *openAPI) publish(s *server.GenericAPIServer) error {
	if s.OpenAPIV3VersionedService != nil {
		for gv, specs := range o.v3 {
			merged, err := builder.MergeSpecsV3(specs...)
			if err != nil {
				return err
			}
			s.OpenAPIV3VersionedService.UpdateGroupVersion(server.APIGroupPrefix[1:]+"/"+gv.String(), merged)
		}
	}
	if s.OpenAPIVersionedService == nil {
		return nil
	}
	merged, err := builder.MergeSpecs(s.StaticOpenAPISpec, o.v2...)
	if err != nil {
		return err
	}
	return s.OpenAPIVersionedService.UpdateSpec(merged)
}

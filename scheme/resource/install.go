package resource

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/emicklei/go-restful/v3"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/warning"

	"github.com/crdkit/crdkit/internal/apistorage"
)

// Install adds the resources to a server that was made from the configuration, whose RESTOptionsGetter stores them. Call
// Install once with all resources, before the server runs. It returns an error if there are no resources, or if the storage
// or the OpenAPI of a resource cannot be created.
func Install(s *server.GenericAPIServer, config *server.Config, resources ...*Resource) error {
	if len(resources) == 0 {
		return errors.New("resource: no resources to install")
	}
	i := installer{server: s, config: config, kinds: newKinds(resources), versions: map[schema.GroupVersion]map[string]rest.Storage{}, warnings: map[schema.GroupVersionResource]string{}}
	var err error
	if i.openAPI, err = buildOpenAPI(resources); err != nil {
		return err
	}
	if i.converter, err = managedfields.NewTypeConverter(i.openAPI.models, false); err != nil {
		return err
	}
	for _, r := range resources {
		if err := i.store(r); err != nil {
			return fmt.Errorf("resource: %s: %w", r.crd.Name, err)
		}
	}
	groups := map[string][]schema.GroupVersion{}
	for gv := range i.versions {
		groups[gv.Group] = append(groups[gv.Group], gv)
		if err := i.version(gv); err != nil {
			return fmt.Errorf("resource: %s: %w", gv, err)
		}
	}
	for name, versions := range groups {
		slices.SortFunc(versions, func(a, b schema.GroupVersion) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		group := metav1.APIGroup{Name: name}
		for _, gv := range versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		}
		group.PreferredVersion = group.Versions[0]
		s.DiscoveryGroupManager.AddGroup(group)
		path, handler := server.APIGroupPrefix+"/"+name, discovery.NewAPIGroupHandler(s.Serializer, group)
		s.Handler.NonGoRestfulMux.Handle(path, handler)
		s.Handler.NonGoRestfulMux.Handle(path+"/", handler)
	}
	return s.AddPostStartHook("resource-openapi", func(server.PostStartHookContext) error { return i.openAPI.publish(s) })
}

type installer struct {
	server    *server.GenericAPIServer
	config    *server.Config
	kinds     kinds
	openAPI   *openAPI
	converter managedfields.TypeConverter
	versions  map[schema.GroupVersion]map[string]rest.Storage
	warnings  map[schema.GroupVersionResource]string // of deprecated versions
}

// store adds the storages of the served versions of a resource.
func (i *installer) store(r *Resource) error {
	for v := range slices.Values(r.crd.Spec.Versions) {
		if !v.Served {
			continue
		}
		gv := r.version(v.Name)
		storages, err := r.store(i.kinds, i.config.RESTOptionsGetter, &v)
		if err != nil {
			return err
		}
		if i.versions[gv] == nil {
			i.versions[gv] = map[string]rest.Storage{}
		}
		for path, storage := range storages {
			i.versions[gv][path] = storage
			i.server.RegisterDestroyFunc(storage.Destroy)
			if ready, ok := storage.(rest.StorageWithReadiness); ok {
				i.server.StorageReadinessHook.RegisterStorage(metav1.GroupVersionResource(gv.WithResource(path)), ready)
			}
		}
		i.warnings[gv.WithResource(r.crd.Spec.Names.Plural)] = r.definition.Version(v.Name).DeprecationWarning()
	}
	return nil
}

// patches are the content types of patches of custom resources.
var patches = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}

// version serves a version. Its handlers have a container of their own, because the server makes OpenAPI of the Go types of
// those in its container.
func (i *installer) version(gv schema.GroupVersion) error {
	codecs := newCodecs(i.kinds)
	group := apistorage.NewGroupVersion(i.server, i.config, server.APIGroupPrefix, gv, i.versions[gv], i.kinds.Scheme)
	group.Serializer, group.TypeConverter = codecs, i.converter
	group.Creater, group.Convertor, group.ConvertabilityChecker, group.Defaulter = i.kinds, i.kinds, i.kinds, i.kinds
	group.UnsafeConvertor = copying{i.kinds}
	container := restful.NewContainer()
	container.Router(restful.CurlyRouter{})
	container.ServiceErrorHandler(func(e restful.ServiceError, req *restful.Request, resp *restful.Response) {
		info, _ := request.RequestInfoFrom(req.Request.Context())
		var err error = apierrors.NewGenericServerResponse(e.Code, "", schema.GroupResource{}, "", e.Message, 0, false)
		if e.Code == http.StatusNotFound { // as for custom resources
			if info == nil || i.versions[gv][info.Resource] == nil || info.Subresource == "" {
				http.NotFound(resp, req.Request)
				return
			}
			err = apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: info.Resource}, info.Name)
		}
		responsewriters.ErrorNegotiated(err, i.server.Serializer, schema.GroupVersion{}, resp, req.Request)
	})
	resources, _, err := group.InstallREST(container)
	if err != nil {
		return err
	}
	i.server.AggregatedDiscoveryGroupManager.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
		Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Version: gv.Version, Resources: resources,
	})
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if info, ok := request.RequestInfoFrom(req.Context()); ok {
			if text := i.warnings[gv.WithResource(info.Resource)]; text != "" {
				warning.AddWarning(req.Context(), "", text)
			}
		}
		// A strategic merge patch needs a Go type.
		patch, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
		if req.Method == http.MethodPatch && !slices.Contains(patches, strings.TrimSpace(patch)) {
			responsewriters.ErrorNegotiated(negotiation.NewUnsupportedMediaTypeError(patches), i.server.Serializer, gv, w, req)
			return
		}
		if req.Method == http.MethodHead { // of what has a GET; the response has no body
			req = req.Clone(req.Context())
			req.Method = http.MethodGet
		}
		container.Dispatch(w, req)
	})
	path := server.APIGroupPrefix + "/" + gv.String()
	i.server.Handler.NonGoRestfulMux.Handle(path, handler)
	i.server.Handler.NonGoRestfulMux.HandlePrefix(path+"/", handler)
	return nil
}

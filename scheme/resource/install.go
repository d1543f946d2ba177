package resource

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/server"
)

// Install adds the resources to a server, grouped by their API groups. The argument options is the
// RESTOptionsGetter of the server's configuration. Call Install once with all resources, before the
// server runs. It returns an error if there are no resources, if the storage of a resource cannot
// be created, or if the server rejects a group.
func Install(s *server.GenericAPIServer, options generic.RESTOptionsGetter, types *runtime.Scheme, resources ...*Resource) error {
	if len(resources) == 0 {
		return errNoResources
	}
	codecs := serializer.NewCodecFactory(types)
	groups := map[string]*server.APIGroupInfo{}
	var order []*server.APIGroupInfo
	for _, r := range resources {
		group := groups[r.name.Group]
		if group == nil {
			info := server.NewDefaultAPIGroupInfo(r.name.Group, types, runtime.NewParameterCodec(types), codecs)
			info.NegotiatedSerializer = textCodecs{codecs}
			group = &info
			groups[r.name.Group], order = group, append(order, group)
		}
		objects, status, err := r.store(options)
		if err != nil {
			return err
		}
		for _, gv := range r.versions {
			storage := group.VersionedResourcesStorageMap[gv.Version]
			if storage == nil {
				storage = map[string]rest.Storage{}
				group.VersionedResourcesStorageMap[gv.Version] = storage
			}
			storage[r.name.Resource] = objects
			if status != nil {
				storage[r.name.Resource+"/status"] = status
			}
		}
	}
	return s.InstallAPIGroups(order...)
}

// textCodecs leave out protobuf, which the types do not support: a client that prefers protobuf and
// accepts JSON must get JSON.
type textCodecs struct{ serializer.CodecFactory }

func (c textCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(c.CodecFactory.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool {
		return i.MediaType == runtime.ContentTypeProtobuf
	})
}

// Codec returns the codec of the storage, and the versions in which the codec encodes objects.
// Objects are stored as JSON in the highest-priority version that defines the kind, and decoded
// from any version to the internal version, which [New] adds if the API has none. Pass the codec to
// options.NewRecommendedOptions, and assign the versions to EncodeVersioner of its
// Etcd.StorageConfig.
func Codec(types *runtime.Scheme) (runtime.Codec, runtime.GroupVersioner) {
	codecs := serializer.NewCodecFactory(types)
	json, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	stored := storageVersions{types}
	return codecs.CodecForVersions(json.Serializer, codecs.UniversalDeserializer(), stored, runtime.InternalGroupVersioner), stored
}

// storageVersions chooses the version in which a kind is stored.
type storageVersions struct{ types *runtime.Scheme }

func (storageVersions) Identifier() string { return "storage" }

func (v storageVersions) KindForGroupVersionKinds(kinds []schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	for _, kind := range kinds {
		for _, gv := range v.types.PrioritizedVersionsForGroup(kind.Group) {
			if stored := gv.WithKind(kind.Kind); v.types.Recognizes(stored) {
				return stored, true
			}
		}
	}
	return schema.GroupVersionKind{}, false
}

package resource

import (
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/crdkit/crdkit/internal/apistorage"
	"github.com/crdkit/crdkit/internal/coerce"
)

// kinds are the kinds of resources, whose objects are unstructured as those of custom resources, and in the scheme the Go types
// that the server needs for every group. It stands in for a runtime.Scheme.
type kinds struct {
	*runtime.Scheme
	resources map[schema.GroupKind]*Resource
	prune     bool // after each conversion
}

func newKinds(resources []*Resource) kinds {
	k := kinds{runtime.NewScheme(), map[schema.GroupKind]*Resource{}, false}
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(k.Scheme, v1)
	k.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIResourceList{})
	apistorage.AddScale(k.Scheme)
	for _, r := range resources {
		k.resources[r.kind.GroupKind] = r
		for _, version := range r.definition.Versions() {
			if gv := r.version(version); !k.IsVersionRegistered(gv) {
				metav1.AddToGroupVersion(k.Scheme, gv)
			}
		}
	}
	utilruntime.Must(k.SetVersionPriority(autoscalingv1.SchemeGroupVersion))
	return k
}

// of returns the resource of an object, or nil.
func (k kinds) of(obj any) *Resource {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return k.resources[u.GroupVersionKind().GroupKind()]
	}
	return nil
}

func (k kinds) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if k.Recognizes(kind) {
		return k.Scheme.New(kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

func (k kinds) Default(obj runtime.Object) {
	if r := k.of(obj); r != nil {
		r.kind.Default(obj.(*unstructured.Unstructured))
		return
	}
	k.Scheme.Default(obj)
}

func (k kinds) Convert(in, out, context any) error {
	r := k.of(in)
	to, ok := out.(*unstructured.Unstructured) // an item of a list has a version, but no kind
	if r == nil || !ok {
		return k.Scheme.Convert(in, out, context)
	}
	converted, err := r.convert(in.(*unstructured.Unstructured), to.GroupVersionKind().Version, k.prune)
	if err == nil {
		to.Object = converted.Object
	}
	return err
}

func (k kinds) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	if list, ok := in.(*unstructured.UnstructuredList); ok {
		return list, nil // the storage has converted the items
	}
	r := k.of(in)
	if r == nil {
		return k.Scheme.ConvertToVersion(in, gv)
	}
	u := in.(*unstructured.Unstructured)
	to, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{u.GroupVersionKind()})
	if !ok {
		return nil, runtime.NewNotRegisteredGVKErrForTarget("resource", u.GroupVersionKind(), gv)
	}
	return r.convert(u, to.Version, k.prune)
}

// copying converts copies, because the field manager sets defaults in what it has converted, which has parts of the live object
// (apiextensions-apiserver/pkg/apiserver/conversion/converter.go, safeConverterWrapper).
type copying struct{ kinds }

func (c copying) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	return c.kinds.ConvertToVersion(in.DeepCopyObject(), gv)
}

// ConvertFieldLabel allows the selectable fields of a version
// (apiextensions-apiserver/pkg/apiserver/conversion/converter.go).
func (k kinds) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (string, string, error) {
	if r := k.resources[kind.GroupKind()]; r != nil && slices.Contains(r.selectable(kind.Version), label) {
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// codecs decode the objects of requests and encode those of responses, which are in the version of the request
// (apiextensions-apiserver/pkg/apiserver/customresource_handler.go, unstructuredNegotiatedSerializer).
type codecs struct {
	kinds
	media []runtime.SerializerInfo
}

// newCodecs leaves out Protobuf, which custom resources do not support: a client that prefers Protobuf and accepts JSON must
// get JSON.
func newCodecs(k kinds) codecs {
	media := serializer.NewCodecFactory(k.Scheme, serializer.WithStreamingCollectionEncodingToJSON()).SupportedMediaTypes()
	return codecs{k, slices.DeleteFunc(slices.Clone(media), func(i runtime.SerializerInfo) bool { return i.MediaType == runtime.ContentTypeProtobuf })}
}

func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo { return c.media }

func (c codecs) EncoderForVersion(encoder runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return versioning.NewCodec(encoder, nil, c.kinds, c.kinds, c.Scheme, c.kinds, gv, nil, "resource")
}

func (c codecs) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	s, ok := decoder.(interface{ IsStrict() bool })
	d := coerce.Decoder{Decoder: decoder, Of: c.kindOf, Strict: ok && s.IsStrict()}
	return versioning.NewCodec(nil, d, runtime.UnsafeObjectConvertor(c.Scheme), c.kinds, c.Scheme, c.kinds, nil, gv, "resource")
}

func (k kinds) kindOf(u *unstructured.Unstructured) coerce.Kind {
	if r := k.of(u); r != nil {
		return r.kind
	}
	return coerce.Kind{}
}

// stored are the options of a storage that holds objects in the storage version, and reads them in the version of requests
// (customresource_handler.go, crdConversionRESTOptionsGetter).
type stored struct {
	generic.RESTOptionsGetter
	kinds
	storage, request schema.GroupVersion
}

func (s stored) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	opts, err := s.RESTOptionsGetter.GetRESTOptions(resource, nil)
	if err != nil {
		return opts, err
	}
	s.prune = true
	json := unstructured.UnstructuredJSONScheme
	decoder := coerce.Decoder{Decoder: json, Of: s.kindOf, Stored: true}
	opts.StorageConfig.Codec = versioning.NewCodec(json, decoder, s.kinds, s.kinds, s.Scheme, s.kinds, s.storage, s.request, "resource")
	return opts, nil
}

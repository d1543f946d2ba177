package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/crdkit/crdkit/examples/pizza-apiserver/restaurant"
)

// Namespace and Name are what the manifests call the server: its namespace, and its Service
// and ServiceAccount.
const (
	Namespace = "restaurant"
	Name      = "pizza-apiserver"
)

// host is the name by which the API server knows this one.
const host = Name + "." + Namespace + ".svc"

// Options are what the flags of the server say. [NewOptions] makes them.
type Options struct {
	recommended *options.RecommendedOptions
	scheme      *runtime.Scheme
	codecs      serializer.CodecFactory
}

// NewOptions returns the defaults. The error is that of the scheme.
func NewOptions() (*Options, error) {
	s, err := NewScheme()
	if err != nil {
		return nil, err
	}
	stored := storageVersions{s}
	codecs := serializer.NewCodecFactory(s)
	// Objects from etcd become internal, whichever version they were stored in.
	json, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("apiserver: the codecs have no JSON")
	}
	codec := codecs.CodecForVersions(json.Serializer, codecs.UniversalDeserializer(), stored, restaurant.GroupVersion)
	o := &Options{recommended: options.NewRecommendedOptions("/"+Name, codec), scheme: s, codecs: codecs}
	o.recommended.Etcd.StorageConfig.EncodeVersioner = stored
	// Its informers wait for v1 of its policies, which no kube-apiserver before 1.36 serves: the
	// server would not become ready there.
	o.recommended.Admission.DefaultOffPlugins.Insert(mutating.PluginName)
	o.recommended.Admission.Plugins.Register(PluginName, newPlugin)
	o.recommended.Admission.RecommendedPluginOrder = append(o.recommended.Admission.RecommendedPluginOrder, PluginName)
	return o, nil
}

// AddFlags adds the flags of k8s.io/apiserver, such as --etcd-servers and --kubeconfig.
func (o *Options) AddFlags(fs *pflag.FlagSet) { o.recommended.AddFlags(fs) }

// Validate returns all faults of the flags, joined.
func (o *Options) Validate() error { return errors.Join(o.recommended.Validate()...) }

// Run serves the restaurant until the context ends, and then ends the requests in flight.
// Without a certificate among the options it makes one, for the name of the Service and for
// localhost, and leaves it in the folder of --cert-dir.
//
// The error says what could not be set up, or why the server has stopped. Run may be called
// once.
func (o *Options) Run(ctx context.Context) error {
	s, err := o.server()
	if err != nil {
		return err
	}
	return s.PrepareRun().RunWithContext(ctx)
}

// server returns the server, which does not run yet.
func (o *Options) server() (*server.GenericAPIServer, error) {
	config, menu, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	s, err := config.Complete().New(Name, server.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	storage, err := newStorage(o.scheme, config.RESTOptionsGetter)
	if err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	group := server.NewDefaultAPIGroupInfo(restaurant.GroupName, o.scheme, runtime.NewParameterCodec(o.scheme), o.codecs)
	group.VersionedResourcesStorageMap = storage
	group.NegotiatedSerializer = textCodecs{o.codecs}
	if err := s.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	return s, s.AddPostStartHook("restaurant-menu", func(hook server.PostStartHookContext) error {
		go menu.run(hook) // its context ends when the last request is answered
		return nil
	})
}

// textCodecs do without protobuf, which the types do not know: a client that asks for
// protobuf or else for JSON is to get JSON, and no error.
type textCodecs struct{ serializer.CodecFactory }

var _ runtime.NegotiatedSerializer = textCodecs{}

func (c textCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(c.CodecFactory.SupportedMediaTypes()), func(i runtime.SerializerInfo) bool {
		return i.MediaType == runtime.ContentTypeProtobuf
	})
}

// config returns the configuration that the options make.
func (o *Options) config() (*server.RecommendedConfig, *menu, error) {
	if err := o.recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", []string{host}, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, nil, err
	}
	config := server.NewRecommendedConfig(o.codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	if err := withOpenAPI(&config.Config, o.scheme); err != nil {
		return nil, nil, err
	}
	var m *menu
	o.recommended.ExtraAdmissionInitializers = func(c *server.RecommendedConfig) (_ []apiadmission.PluginInitializer, err error) {
		if m, err = newMenu(c.LoopbackClientConfig, o.scheme); err != nil {
			return nil, err
		}
		return []apiadmission.PluginInitializer{menuInitializer{m}}, nil
	}
	if err := o.recommended.ApplyTo(config); err != nil {
		return nil, nil, err
	}
	// Until the menu is known, no pizza can be judged.
	config.AddReadyzChecks(healthz.NamedCheck("toppings", m.known.Check), healthz.NamedCheck("pizzas", m.pizzasOf.Check))
	return config, m, nil
}

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/crdkit/crdkit/admission/plugin"
	"github.com/crdkit/crdkit/examples/pizza"
	"github.com/crdkit/crdkit/scheme/resource"
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
	resources   []*resource.Resource
	toppings    *plugin.Plugin // has no handler yet
}

// NewOptions returns the defaults. The error is that of the scheme.
func NewOptions() (*Options, error) {
	s, reg, err := newScheme()
	if err != nil {
		return nil, err
	}
	resources, err := newResources(s)
	if err != nil {
		return nil, err
	}
	codec, stored := resource.Codec(s)
	o := &Options{options.NewRecommendedOptions("/"+Name, codec), s, resources, plugin.New(ToppingsPlugin)}
	o.recommended.Etcd.StorageConfig.EncodeVersioner = stored
	// Its informers wait for v1 of its policies, which no kube-apiserver before 1.36 serves: the
	// server would not become ready there.
	o.recommended.Admission.DefaultOffPlugins.Insert(mutating.PluginName)
	defaulting := plugin.New(DefaultsPlugin)
	defaulting.Handle(defaults(s, reg))
	defaulting.Register(o.recommended.Admission.Plugins)
	o.toppings.Register(o.recommended.Admission.Plugins)
	o.recommended.Admission.RecommendedPluginOrder = append(o.recommended.Admission.RecommendedPluginOrder, DefaultsPlugin, ToppingsPlugin)
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
	if err := resource.Install(s, config.RESTOptionsGetter, o.scheme, o.resources...); err != nil {
		return nil, fmt.Errorf("apiserver: %w", err)
	}
	return s, s.AddPostStartHook("restaurant-menu", func(hook server.PostStartHookContext) error {
		go menu.run(hook) // its context ends when the last request is answered
		return nil
	})
}

// config returns the configuration that the options make.
func (o *Options) config() (*server.RecommendedConfig, *menu, error) {
	if err := o.recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", []string{host}, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, nil, err
	}
	config := server.NewRecommendedConfig(serializer.NewCodecFactory(o.scheme))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	// The schemas are for kubectl explain and for server-side apply.
	if err := resource.OpenAPI(&config.Config, o.scheme, Name, pizza.Definitions()...); err != nil {
		return nil, nil, err
	}
	var m *menu
	o.recommended.ExtraAdmissionInitializers = func(c *server.RecommendedConfig) (_ []apiadmission.PluginInitializer, err error) {
		if m, err = newMenu(c.LoopbackClientConfig); err == nil {
			o.toppings.Handle(m.validation(o.scheme))
		}
		return nil, err
	}
	if err := o.recommended.ApplyTo(config); err != nil {
		return nil, nil, err
	}
	// Until the menu is known, no pizza can be judged.
	config.AddReadyzChecks(healthz.NamedCheck("toppings", m.known.Check), healthz.NamedCheck("pizzas", m.pizzasOf.Check))
	return config, m, nil
}

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

	"github.com/crdkit/crdkit/admission"
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

// Host is the name by which the API server knows this one.
const Host = Name + "." + Namespace + ".svc"

// The names of the admission plug-ins for --disable-admission-plugins. They run the functions that
// package pizza serves as webhooks.
const (
	// DefaultsPlugin adds toppings to a pizza without toppings.
	DefaultsPlugin = "RestaurantDefaults"
	// ToppingsPlugin requires that the toppings of each pizza exist, and forbids the deletion of a
	// topping that is on a pizza.
	ToppingsPlugin = "RestaurantToppings"
)

// Options are what the flags of the server say. [NewOptions] makes them.
type Options struct {
	recommended *options.RecommendedOptions
	scheme      *runtime.Scheme
	resources   []*resource.Resource
	toppings    *plugin.Plugin // has no handler yet
}

// NewOptions returns the defaults. The error is that of the scheme or of a definition.
func NewOptions() (*Options, error) {
	s, reg, resources, err := newResources()
	if err != nil {
		return nil, err
	}
	o := &Options{options.NewRecommendedOptions("/"+Name, nil), s, resources, plugin.New(ToppingsPlugin)}
	// Its informers wait for v1 of its policies, which no kube-apiserver before 1.36 serves: the
	// server would not become ready there.
	o.recommended.Admission.DefaultOffPlugins.Insert(mutating.PluginName)
	defaulting := plugin.New(DefaultsPlugin)
	defaulting.Handle(pizza.Defaults(s, reg))
	defaulting.Register(o.recommended.Admission.Plugins)
	o.toppings.Register(o.recommended.Admission.Plugins)
	o.recommended.Admission.RecommendedPluginOrder = append(o.recommended.Admission.RecommendedPluginOrder, DefaultsPlugin, ToppingsPlugin)
	return o, nil
}

// AddFlags adds the flags of k8s.io/apiserver, such as --etcd-servers and --kubeconfig.
func (o *Options) AddFlags(fs *pflag.FlagSet) { o.recommended.AddFlags(fs) }

// Run serves the restaurant until the context ends, and then ends the requests in flight.
// Without a certificate among the options it makes one, for the name of the Service and for
// localhost, and leaves it in the folder of --cert-dir.
//
// The error has all faults of the flags, or says what could not be set up, or why the server has
// stopped. Run may be called once.
func (o *Options) Run(ctx context.Context) error {
	if err := errors.Join(o.recommended.Validate()...); err != nil {
		return err
	}
	s, err := o.server()
	if err != nil {
		return fmt.Errorf("apiserver: %w", err)
	}
	return s.PrepareRun().RunWithContext(ctx)
}

// server returns the server, which does not run yet.
func (o *Options) server() (*server.GenericAPIServer, error) {
	if err := o.recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", []string{Host}, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	config := server.NewRecommendedConfig(serializer.NewCodecFactory(o.scheme))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	resource.OpenAPI(&config.Config, Name)
	var menu *pizza.Menu
	o.recommended.ExtraAdmissionInitializers = func(c *server.RecommendedConfig) (_ []apiadmission.PluginInitializer, err error) {
		if menu, err = pizza.NewMenu(c.LoopbackClientConfig, o.scheme); err == nil {
			o.toppings.Handle(admission.NewHandler(o.scheme, append(menu.ValidatePizzas(), menu.ValidateToppings())...))
		}
		return nil, err
	}
	if err := o.recommended.ApplyTo(config); err != nil {
		return nil, err
	}
	config.AddReadyzChecks(healthz.NamedCheck("menu", menu.Ready)) // until the menu is known, no pizza can be judged
	s, err := config.Complete().New(Name, server.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	if err := resource.Install(s, &config.Config, o.resources...); err != nil {
		return nil, err
	}
	return s, s.AddPostStartHook("restaurant-menu", func(hook server.PostStartHookContext) error {
		go menu.Run(hook) // its context ends when the last request is answered
		return nil
	})
}

package pizza

import (
	_ "embed" // for the definitions
	"errors"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/webhook/registration"
)

var (
	//go:embed config/crd/restaurant.programming-kubernetes.info_pizzas.yaml
	pizzaDefinition string
	//go:embed config/crd/restaurant.programming-kubernetes.info_toppings.yaml
	toppingDefinition string
)

// Definitions returns the CustomResourceDefinitions that controller-gen generated from the types in api.
func Definitions() [][]byte { return [][]byte{[]byte(pizzaDefinition), []byte(toppingDefinition)} }

var (
	pizzaResource   = v1beta1.GroupVersion.WithResource("pizzas").GroupResource()
	toppingResource = v1alpha1.GroupVersion.WithResource("toppings").GroupResource()
)

// The names of the admission webhooks.
const (
	defaultPizzas    = "default.pizzas.restaurant.programming-kubernetes.info"
	validatePizzas   = "validate.pizzas.restaurant.programming-kubernetes.info"
	validateToppings = "validate.toppings.restaurant.programming-kubernetes.info"
)

// declare declares the webhooks, their paths, the endpoint of the operator, and the guard of its service account. The
// rules come from the handlers. [Manifests] prints the manifests of the declaration, which you apply.
//
// A path begins with the version of the reviews that the API server should send, so that the
// metrics tell the versions apart, although all handlers answer both.
func (op *operator) declare(e Endpoint) (*registration.Webhooks, error) {
	if len(e.ReviewVersions) == 0 {
		return nil, errors.New("an endpoint needs the versions of the reviews")
	}
	prefix := "/" + e.ReviewVersions[0]
	measure := op.metrics.admission
	ofToppings := []admission.Option{measure(validateToppings), op.ValidateToppings()}
	if e.NoFreeToppings {
		ofToppings = append(ofToppings, admission.Validate(costsSomething, admission.IfChanged("spec.cost")))
	}
	return registration.New(Name, append(e.options(),
		registration.CRDs(Definitions()...),
		registration.Conversion(prefix+"/convert",
			conversion.NewHandler(op.registry, op.metrics.conversion)),
		registration.Mutating(defaultPizzas, prefix+"/default/pizzas",
			Defaults(op.scheme, op.registry, measure(defaultPizzas))),
		registration.Validating(validatePizzas, prefix+"/validate/pizzas",
			admission.NewHandler(op.scheme, append(op.ValidatePizzas(), measure(validatePizzas))...)),
		registration.Validating(validateToppings, prefix+"/validate/toppings",
			admission.NewHandler(op.scheme, ofToppings...)),
		registration.Wrap(op.metrics.count),
		registration.Guard(Name, Name+"-webhook"),
	)...)
}

// Endpoint is the address of the operator for the API server, with the reviews that the operator
// requests.
type Endpoint struct {
	// Namespace of the operator, of its Service and service account [Name], and of the Secret with its CA.
	Namespace string
	// ServicePort is the port of the Service.
	ServicePort int32
	// URL of an operator outside of the cluster, without a path, instead of a Service.
	URL string
	// ReviewVersions are the versions in which the API server may send reviews, the preferred one
	// first: v1, v1beta1, or both.
	ReviewVersions []string
	// NoFreeToppings rejects toppings that cost nothing. A release with it registers for more
	// requests than one without it.
	NoFreeToppings bool
	// APIServers are the CIDRs from which the API servers connect. If there are any, the manifests contain a
	// NetworkPolicy.
	APIServers []string
}

// InCluster is the endpoint of the operator that the manifests deploy.
func InCluster() Endpoint {
	return Endpoint{Namespace: Namespace, ServicePort: 443, ReviewVersions: []string{"v1", "v1beta1"}}
}

func (e Endpoint) options() []registration.Option {
	options := []registration.Option{registration.ReviewVersions(e.ReviewVersions...)}
	if len(e.APIServers) > 0 {
		pods := map[string]string{"app.kubernetes.io/name": Name}
		options = append(options, registration.NetworkPolicy(pods, 8443, e.APIServers, monitoring))
	}
	if e.URL != "" {
		return append(options, registration.URL(e.URL), registration.OwnNamespace(e.Namespace))
	}
	return append(options, registration.Service(e.Namespace, Name), registration.ServicePort(e.ServicePort))
}

// monitoring are the Pods of the namespace in which Prometheus runs.
var monitoring = networkingv1.NetworkPolicyPeer{
	NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "monitoring"}},
}

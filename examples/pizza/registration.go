package pizza

import (
	"embed"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
)

//go:embed config/crd/*.yaml
var crds embed.FS

var (
	pizzaResource   = v1beta1.GroupVersion.WithResource("pizzas").GroupResource()
	toppingResource = v1alpha1.GroupVersion.WithResource("toppings").GroupResource()
)

// The names of the webhooks.
const (
	defaultPizzas    = "default.pizzas.restaurant.programming-kubernetes.info"
	validatePizzas   = "validate.pizzas.restaurant.programming-kubernetes.info"
	validateToppings = "validate.toppings.restaurant.programming-kubernetes.info"
)

func convertPath(reviewVersion string) string       { return "/convert/" + reviewVersion + "/pizza" }
func admitPath(reviewVersion string) string         { return "/admit/" + reviewVersion + "/pizza" }
func validatePizzaPath(reviewVersion string) string { return "/validate/" + reviewVersion + "/pizza" }
func validateToppingPath(reviewVersion string) string {
	return "/validate/" + reviewVersion + "/topping"
}

// Endpoint is where the API server finds the operator's webhooks.
type Endpoint struct {
	// URL of the operator, without a path; none if the API server finds it by Service.
	URL string
	// Service in front of the operator, whose port is 443.
	Service types.NamespacedName
	// CABundle holds the PEM certificates of which one must have signed the
	// operator's.
	CABundle []byte
	// ReviewVersion is the version of the reviews that the API server shall send:
	// v1 or v1beta1.
	ReviewVersion string
}

// CustomResourceDefinitions returns the definitions of the restaurant's kinds;
// pizzas are converted by the operator.
func (e Endpoint) CustomResourceDefinitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, resource := range []string{"pizzas", "toppings"} {
		file, err := crds.ReadFile("config/crd/" + v1beta1.GroupVersion.Group + "_" + resource + ".yaml")
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(file, crd); err != nil {
			return nil, fmt.Errorf("the definition of %s: %w", resource, err)
		}
		all = append(all, crd)
	}
	all[0].Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             e.conversionClient(convertPath(e.ReviewVersion)),
			ConversionReviewVersions: []string{e.ReviewVersion},
		},
	}
	return all, nil
}

// WebhookConfigurations returns the registration of the admission webhooks.
func (e Endpoint) WebhookConfigurations() (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	rules := func(resource string, versions []string, ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: ops,
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{v1beta1.GroupVersion.Group},
				APIVersions: versions,
				Resources:   []string{resource},
			},
		}}
	}
	const create, update, del = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	pizzaVersions := []string{v1alpha1.GroupVersion.Version, v1beta1.GroupVersion.Version}
	meta := metav1.ObjectMeta{Name: v1beta1.GroupVersion.Group}

	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: meta,
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    defaultPizzas,
			ClientConfig:            e.admissionClient(admitPath(e.ReviewVersion)),
			Rules:                   rules("pizzas", pizzaVersions, create, update),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(10)),
			AdmissionReviewVersions: []string{e.ReviewVersion},
		}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: meta,
	}
	for _, w := range []struct {
		name, path string
		rules      []admissionregistrationv1.RuleWithOperations
	}{
		{validatePizzas, validatePizzaPath(e.ReviewVersion), rules("pizzas", pizzaVersions, create, update)},
		{validateToppings, validateToppingPath(e.ReviewVersion), rules("toppings", []string{v1alpha1.GroupVersion.Version}, del)},
	} {
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:                    w.name,
			ClientConfig:            e.admissionClient(w.path),
			Rules:                   w.rules,
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(10)),
			AdmissionReviewVersions: []string{e.ReviewVersion},
		})
	}
	return mutating, validating
}

func (e Endpoint) conversionClient(path string) *apiextensionsv1.WebhookClientConfig {
	c := &apiextensionsv1.WebhookClientConfig{CABundle: e.CABundle}
	if e.URL != "" {
		c.URL = new(e.URL + path)
	} else {
		c.Service = &apiextensionsv1.ServiceReference{Namespace: e.Service.Namespace, Name: e.Service.Name, Path: &path}
	}
	return c
}

func (e Endpoint) admissionClient(path string) admissionregistrationv1.WebhookClientConfig {
	c := admissionregistrationv1.WebhookClientConfig{CABundle: e.CABundle}
	if e.URL != "" {
		c.URL = new(e.URL + path)
	} else {
		c.Service = &admissionregistrationv1.ServiceReference{Namespace: e.Service.Namespace, Name: e.Service.Name, Path: &path}
	}
	return c
}

// Manifests returns all that must be registered, as YAML: first the definitions,
// then the webhooks.
func (e Endpoint) Manifests() (definitions, webhooks []byte, err error) {
	crds, err := e.CustomResourceDefinitions()
	if err != nil {
		return nil, nil, err
	}
	mutating, validating := e.WebhookConfigurations()
	if definitions, err = documents(crds[0], crds[1]); err != nil {
		return nil, nil, err
	}
	webhooks, err = documents(mutating, validating)
	return definitions, webhooks, err
}

func documents(objs ...runtime.Object) ([]byte, error) {
	var all []byte
	for _, obj := range objs {
		doc, err := yaml.Marshal(obj)
		if err != nil {
			return nil, err
		}
		all = append(append(all, "---\n"...), doc...)
	}
	return all, nil
}

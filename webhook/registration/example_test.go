package registration_test

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/webhook/registration"
)

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pizzas.example.com
spec:
  group: example.com
  names: {kind: Pizza, plural: pizzas}
  scope: Namespaced
  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// declaration returns the declaration of an operator whose pizzas have two versions.
func declaration() (*registration.Webhooks, error) {
	reg := conversion.NewRegistry(runtime.NewScheme())
	spoke := schema.GroupVersionKind{Group: "example.com", Version: "v1alpha1", Kind: "Pizza"}
	if err := conversion.AddFields(reg, spoke, "v1", conversion.Rename("spec.topping", "spec.toppings")); err != nil {
		return nil, err
	}
	notEaten := func(_ context.Context, old *unstructured.Unstructured) (errs field.ErrorList, _ error) {
		if eater, ok := old.GetLabels()["eater"]; ok {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels"), "it is being eaten by "+eater))
		}
		return errs, nil
	}
	pizza := admission.ForKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pizza"})
	return registration.New("pizza-operator",
		registration.Service("pizza-system", "pizza-operator"),
		registration.CRDs([]byte(crd)),
		registration.Conversion("/convert", conversion.NewHandler(reg)),
		registration.Validating("delete.pizzas.example.com", "/validate",
			admission.NewHandler(runtime.NewScheme(), admission.ConvertWith(reg), admission.ValidateDelete(notEaten, pizza)),
			func(w *admissionregistrationv1.ValidatingWebhook) { w.TimeoutSeconds = new(int32(5)) }),
	)
}

// The manifests are applied with kubectl apply. The operator writes the CA bundle when it runs.
func ExampleWebhooks_Manifests() {
	hooks, err := declaration()
	if err != nil {
		panic(err)
	}
	text, err := hooks.Manifests(nil)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(text))
	// Output:
	// ---
	// apiVersion: apiextensions.k8s.io/v1
	// kind: CustomResourceDefinition
	// metadata:
	//   name: pizzas.example.com
	// spec:
	//   conversion:
	//     strategy: Webhook
	//     webhook:
	//       clientConfig:
	//         service:
	//           name: pizza-operator
	//           namespace: pizza-system
	//           path: /convert
	//           port: 443
	//       conversionReviewVersions:
	//       - v1
	//       - v1beta1
	//   group: example.com
	//   names:
	//     kind: Pizza
	//     plural: pizzas
	//   scope: Namespaced
	//   versions:
	//   - name: v1alpha1
	//     schema:
	//       openAPIV3Schema:
	//         type: object
	//     served: true
	//     storage: false
	//   - name: v1
	//     schema:
	//       openAPIV3Schema:
	//         type: object
	//     served: true
	//     storage: true
	// ---
	// apiVersion: admissionregistration.k8s.io/v1
	// kind: ValidatingWebhookConfiguration
	// metadata:
	//   name: pizza-operator
	// webhooks:
	// - admissionReviewVersions:
	//   - v1
	//   - v1beta1
	//   clientConfig:
	//     service:
	//       name: pizza-operator
	//       namespace: pizza-system
	//       path: /validate
	//       port: 443
	//   failurePolicy: Fail
	//   matchPolicy: Equivalent
	//   name: delete.pizzas.example.com
	//   namespaceSelector:
	//     matchExpressions:
	//     - key: kubernetes.io/metadata.name
	//       operator: NotIn
	//       values:
	//       - kube-system
	//       - pizza-system
	//   objectSelector: {}
	//   rules:
	//   - apiGroups:
	//     - example.com
	//     apiVersions:
	//     - v1alpha1
	//     - v1
	//     operations:
	//     - DELETE
	//     resources:
	//     - pizzas
	//     scope: Namespaced
	//   sideEffects: None
	//   timeoutSeconds: 5
}

// Hosts returns the names for the serving certificate, and PolicyRules the rules of the
// operator's ClusterRole.
func ExampleWebhooks_PolicyRules() {
	hooks, err := declaration()
	if err != nil {
		panic(err)
	}
	text, err := yaml.Marshal(hooks.PolicyRules())
	if err != nil {
		panic(err)
	}
	fmt.Println(hooks.Hosts())
	fmt.Print(string(text))
	// Output:
	// [pizza-operator.pizza-system.svc]
	// - apiGroups:
	//   - apiextensions.k8s.io
	//   resourceNames:
	//   - pizzas.example.com
	//   resources:
	//   - customresourcedefinitions
	//   verbs:
	//   - get
	//   - watch
	//   - update
	// - apiGroups:
	//   - admissionregistration.k8s.io
	//   resourceNames:
	//   - pizza-operator
	//   resources:
	//   - mutatingwebhookconfigurations
	//   - validatingwebhookconfigurations
	//   verbs:
	//   - get
	//   - watch
	//   - update
	// - apiGroups:
	//   - ""
	//   resources:
	//   - events
	//   verbs:
	//   - create
}

// New returns one error with all mistakes of a declaration.
func ExampleNew_mistakes() {
	anything := func(context.Context, *metav1.PartialObjectMetadata) (field.ErrorList, error) { return nil, nil }
	handler := admission.NewHandler(runtime.NewScheme(), admission.Validate(anything))
	_, err := registration.New("pizza-operator",
		registration.URL("http://localhost"),
		registration.Mutating("pizzas", "/admit", handler),
	)
	fmt.Println(err)
	// Output:
	// registration: URL "http://localhost", expected https://host or https://host:port; the paths come with the handlers
	// registration: Mutating pizzas: name: Invalid value: "pizzas": should be a domain with at least three segments separated by dots
	// registration: Mutating pizzas: handler without functions of Mutate: register it with Validating
	// registration: Mutating pizzas: function of every kind: name the kind with ForKind of package admission, or set Rules
}

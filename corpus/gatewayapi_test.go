package corpus_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/apis/v1/validation"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema/equivalence"
	"github.com/crdkit/crdkit/test/expect"
)

// gatewayAPI returns the release of Gateway API that has both: later ones have no Go validation.
func gatewayAPI(t *testing.T) *validated {
	t.Helper()
	s := runtime.NewScheme()
	expect.NoError(t, gatewayv1.AddToScheme(s))
	v := &validated{
		handler: admission.NewHandler(s, admission.Validate(always(validation.ValidateGateway)), admission.Validate(always(validation.ValidateHTTPRoute))),
		options: []equivalence.Option{
			equivalence.Requests(4000),
			equivalence.Undecided("it repeats an enum", "HTTPRoute.gateway.networking.k8s.io v1: spec.rules[].matches[].path: self.type in ['Exact','PathPrefix'] || self.type == 'RegularExpression'"),
		},
		known: gatewayAPIKnown,
	}
	const definitions = "config/crd/standard/gateway.networking.k8s.io_"
	for _, file := range published(t, "sigs.k8s.io/gateway-api@v1.0.0", definitions+"gateways.yaml", definitions+"httproutes.yaml") {
		crd := definition(t, file).CustomResourceDefinition()
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == "v1" // v1beta1 has the same schema
		}
		v.rules = append(v.rules, crd)
	}
	return v
}

// always returns a validation that has no other errors than those of fields.
func always[T any](f func(*T) field.ErrorList) func(context.Context, *T) (field.ErrorList, error) {
	return func(_ context.Context, object *T) (field.ErrorList, error) { return f(object), nil }
}

var gatewayAPIKnown = []difference{{
	title:  "HeaderActions_AreInTwoLists",
	report: `cannot specify multiple actions for header$`,
	denies: goDenies,
	object: `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"x","namespace":"default"},"spec":{"rules":[{"filters":[{"responseHeaderModifier":{"add":[{"name":"a","value":"a"}],"remove":["a"]},"type":"ResponseHeaderModifier"}]}]}}`,
	cause:  "validateHTTPHeaderModifier in apis/v1/validation/httproute.go; the lists add, set and remove of HTTPHeaderFilter have no rule together",
	client: "a filter that adds and removes one header is accepted, and its effect depends on the implementation",
}, {
	title:  "CertificateRefs_ForAnyProtocol",
	report: `certificateRefs must be specified when TLSModeType is Terminate$`,
	denies: rulesDenies,
	object: `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"Gateway","metadata":{"name":"x","namespace":"default"},"spec":{"gatewayClassName":"a","listeners":[{"name":"a","port":6,"protocol":"a","tls":{}}]}}`,
	cause:  "the rule of GatewayTLSConfig in apis/v1/gateway_types.go; ValidateTLSCertificateRefs in apis/v1/validation/gateway.go asks only listeners of the protocols HTTPS and TLS",
	client: "a listener of an implementation's own protocol needs certificateRefs; without the field, the denial is that the rule finds no such key",
}, {
	title:  "Mirror_WithoutPort",
	report: `requestMirror\.backendRef: Invalid value: Must have port for Service reference$`,
	denies: rulesDenies,
	object: `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"x","namespace":"default"},"spec":{"rules":[{"filters":[{"requestMirror":{"backendRef":{"name":"a"}},"type":"RequestMirror"}]}]}}`,
	cause:  "the rule of BackendObjectReference in apis/v1/object_reference_types.go; validateHTTPRouteBackendServicePorts in apis/v1/validation/httproute.go does not look into filters",
	client: "an HTTPRoute that mirrors requests to a Service without a port is refused",
}, {
	title:  "ParentRefs_HaveExplicitGroup",
	report: `sectionNames or ports must be specified when more than one parentRef refers to the same parent$`,
	denies: goDenies,
	object: `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":"x","namespace":"default"},"spec":{"parentRefs":[{"group":"","name":"."},{"name":"."}]}}`,
	cause:  "ValidateParentRefs in apis/v1/validation/common.go compares parents without their group; the rule of parentRefs compares it, and an empty one differs from the default",
	client: "an HTTPRoute with two references to one name in two groups is accepted",
}, {
	title:  "StatusAddress_IsNoHostname",
	report: `status\.addresses\[\d+\]: Invalid value: Hostname value must only contain valid characters`,
	denies: rulesDenies,
	cause:  "the rule of GatewayStatusAddress in apis/v1/gateway_types.go; the webhook is not called for the status",
	client: "a controller cannot write a status with an address that is no hostname",
}}

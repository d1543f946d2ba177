package corpus_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/validation"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/equivalence"
	"github.com/crdkit/crdkit/test/expect"
)

// istioKinds are those that the test compares.
var istioKinds = map[string]struct {
	spec     func() config.Spec
	validate validation.ValidateFunc
}{
	"PeerAuthentication": {func() config.Spec { return &security.PeerAuthentication{} }, validation.ValidatePeerAuthentication},
	"ServiceEntry":       {func() config.Spec { return &networking.ServiceEntry{} }, validation.ValidateServiceEntry},
	"WorkloadEntry":      {func() config.Spec { return &networking.WorkloadEntry{} }, validation.ValidateWorkloadEntry},
	"WorkloadGroup":      {func() config.Spec { return &networking.WorkloadGroup{} }, validation.ValidateWorkloadGroup},
}

// istio returns some kinds of Istio.
func istio(t *testing.T) *validated {
	t.Helper()
	v := &validated{
		handler: admission.NewHandler(runtime.NewScheme(), admission.Validate(validateIstio)),
		options: []equivalence.Option{equivalence.Requests(4000)},
		known:   istioKnown,
	}
	text, err := os.ReadFile(published(t, "istio.io/api@v1.31.0-rc.0.0.20260824154656-b943409680a7", "kubernetes/customresourcedefinitions.gen.yaml")[0])
	expect.NoError(t, err)
	all, err := schema.ParseAll(text)
	expect.NoError(t, err)
	for _, d := range all {
		if _, ok := istioKinds[d.GroupKind().Kind]; !ok {
			continue
		}
		crd := d.CustomResourceDefinition()
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == "v1" // all versions have the same schema
		}
		v.rules = append(v.rules, crd)
	}
	return v
}

// unquoted matches errors with a value that is not quoted. With it, each value would be another difference.
var unquoted = regexp.MustCompile(`(^(?:invalid port name|unsupported protocol):).*|.*( is not a valid (?:IP|CIDR block)$)`)

// validateIstio decides as validate in pkg/webhooks/validation/server/server.go of Istio does. That joins the errors in the
// order in which they are found, which differs from call to call.
func validateIstio(_ context.Context, object *unstructured.Unstructured) (errs field.ErrorList, err error) {
	kind := istioKinds[object.GetKind()]
	spec := kind.spec()
	text, err := json.Marshal(object.Object["spec"])
	if err == nil {
		err = config.ApplyJSON(spec, string(text))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("error decoding configuration: " + err.Error())
	}
	_, err = kind.validate(config.Config{
		Meta: config.Meta{Name: object.GetName(), Namespace: object.GetNamespace(), Labels: object.GetLabels(), Annotations: object.GetAnnotations()},
		Spec: spec,
	})
	if err != nil {
		for _, line := range slices.Compact(slices.Sorted(strings.SplitSeq(err.Error(), "\n"))) {
			if line = strings.TrimSpace(strings.TrimPrefix(line, "\t* ")); line != "" && !strings.HasSuffix(line, "occurred:") {
				errs = append(errs, field.Forbidden(field.NewPath("spec"), unquoted.ReplaceAllString(line, "$1 …$2")))
			}
		}
	}
	return errs, nil
}

var istioKnown = []difference{{
	title:  "Addresses_AreNoIPs",
	report: `is not a valid (IP|CIDR block)`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"addresses":["a"],"hosts":[""]}}`,
	cause:  "ValidateIPSubnet in pkg/config/validation/agent/validation.go; addresses of ServiceEntry has no rule about a single one",
	client: "a ServiceEntry with an address that is no IP and no CIDR block is accepted",
}, {
	title:  "Host_IsNoDomain",
	report: `spec: Forbidden: domain name|spec: Forbidden: [^\[,]*empty domain name not allowed$`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":[""]}}`,
	cause:  "ValidateWildcardDomain in pkg/config/validation/agent/validation.go; hosts of ServiceEntry has only the rule that a host is not *",
	client: "a ServiceEntry with a host that is no domain name is accepted, even an empty one",
}, {
	title:  "Host_IsNoFQDN",
	report: `hosts must be FQDN or contain only prefix wildcards if no endpoints are provided`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":["03094730"],"resolution":"DNS_ROUND_ROBIN"}}`,
	cause:  "ValidateServiceEntry in pkg/config/validation/validation.go; hosts has no rule for the resolutions that look names up",
	client: "a ServiceEntry is accepted with a host that DNS cannot resolve",
}, {
	title:  "Hosts_AreSeveral",
	report: `multiple hosts provided with non-HTTP, non-TLS ports`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":["a","a"],"ports":[{"name":"a","number":1}],"resolution":"DNS_ROUND_ROBIN"}}`,
	cause:  "ValidateServiceEntry in pkg/config/validation/validation.go; hosts has no rule about the protocols of ports",
	client: "a ServiceEntry is accepted with hosts of which only the address tells one from the other",
}, {
	title:  "Selector_HasWildcard",
	report: `wildcard is not supported in selector`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":[""],"workloadSelector":{"labels":{"*":""}}}}`,
	cause:  "validateWorkloadSelector in pkg/config/validation/validation.go; the rules of workloadSelector are about values, and not about keys",
	client: "a ServiceEntry is accepted with a selector that selects nothing",
}, {
	title:  "DynamicDNS_WithoutWildcard",
	report: `host must be wildcarded for resolution mode DYNAMIC_DNS`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":["a"],"resolution":"DYNAMIC_DNS"}}`,
	cause:  "ValidateServiceEntry in pkg/config/validation/validation.go; no rule has DYNAMIC_DNS",
	client: "a ServiceEntry with a resolution that needs a wildcard is accepted without one",
}, {
	title:  "PortName_IsInvalid",
	report: `invalid port name: `,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":["a"],"ports":[{"name":"","number":1}]}}`,
	cause:  "ValidatePortName in pkg/config/validation/validation.go; ports of ServiceEntry has rules about numbers only, unlike the ports of its endpoints",
	client: "a ServiceEntry with a port name that is no DNS label is accepted, even an empty one",
}, {
	title:  "Protocol_IsUnsupported",
	report: `unsupported protocol: `,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"hosts":["a"],"ports":[{"name":"a","number":1,"protocol":"a"}]}}`,
	cause:  "ValidateProtocol in pkg/config/validation/validation.go; the protocol of a port of ServiceEntry has no rule, and is not an enum",
	client: "a ServiceEntry is accepted with a port whose protocol Istio does not know",
}, {
	title:  "ExportTo_IsInvalid",
	report: `valid DNS 1123 label is allowed as exportTo entry`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"exportTo":[""],"hosts":["a"]}}`,
	cause:  "validateExportTo in pkg/config/validation/validation.go; exportTo has no rule",
	client: "a ServiceEntry that is exported to no possible namespace is accepted",
}, {
	title:  "Address_IsEmpty",
	report: `spec: Forbidden: address is required`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry","metadata":{"name":"x","namespace":"default"},"spec":{"address":""}}`,
	cause:  "validateWorkloadEntry in pkg/config/validation/validation.go; the rule is has(self.address) || has(self.network), which is true for empty ones",
	client: "an endpoint with the address \"\" is accepted",
}, {
	title:  "Address_IsNoHost",
	report: `endpoint address "(?s:.*)" is not a valid FQDN or an IP address`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry","metadata":{"name":"x","namespace":"default"},"spec":{"address":"AǺA\u003e"}}`,
	cause:  "validateWorkloadEntry in pkg/config/validation/validation.go; the rules of address are about Unix sockets only",
	client: "a WorkloadEntry with an address that is neither IP nor domain name is accepted",
}, {
	title:  "Label_IsInvalid",
	report: `invalid tag (key|value): `,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadEntry","metadata":{"name":"x","namespace":"default"},"spec":{"labels":{"xddronbb":"'"},"network":"a"}}`,
	cause:  "Instance.Validate in pkg/config/labels/instance.go; labels of WorkloadEntry and of WorkloadGroup's metadata have no rule",
	client: "a workload is accepted with labels that no Pod can have, and that no selector can match",
}, {
	title:  "Command_IsEmpty",
	report: `exec\.command is required`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadGroup","metadata":{"name":"x","namespace":"default"},"spec":{"probe":{"exec":{"command":[]}},"template":{}}}`,
	cause:  "validateReadinessProbe in pkg/config/validation/validation.go; command is required, but may be an empty list",
	client: "a WorkloadGroup is accepted with a probe that has nothing to run",
}, {
	title:  "Probe_HasNoMethod",
	report: `unknown health check method <nil>`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadGroup","metadata":{"name":"x","namespace":"default"},"spec":{"probe":{},"template":{}}}`,
	cause:  "validateReadinessProbe in pkg/config/validation/validation.go; the definition allows at most one method, and so none",
	client: "a WorkloadGroup is accepted with a probe that does not say what to probe",
}, {
	title:  "ProbeHeader_HasNoName",
	report: `header name cannot be empty`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadGroup","metadata":{"name":"x","namespace":"default"},"spec":{"probe":{"httpGet":{"httpHeaders":[{}],"port":1}},"template":{}}}`,
	cause:  "validateHTTPReadinessProbe in pkg/config/validation/validation.go; the name of a header is not required",
	client: "a WorkloadGroup is accepted with a header that has no name",
}, {
	title:  "ProbeHeader_HasAnUnderscore",
	report: `header name \S+ is not a valid header name`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadGroup","metadata":{"name":"x","namespace":"default"},"spec":{"probe":{"httpGet":{"httpHeaders":[{"name":"a_b"}],"port":1}},"template":{}}}`,
	cause:  "ValidateProbeHeaderName in pkg/config/validation/validation.go; the pattern of the definition also has the underscore",
	client: "a WorkloadGroup is accepted with a header that the webhook refuses",
}, {
	title:  "Probe_IsGRPC",
	report: `unknown health check method \*v1alpha3\.ReadinessProbe_Grpc`,
	denies: goDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadGroup","metadata":{"name":"x","namespace":"default"},"spec":{"probe":{"grpc":{}},"template":{}}}`,
	cause:  "validateReadinessProbe in pkg/config/validation/validation.go has no case for grpc, which the definition has, and the agent runs (pkg/istio-agent/health/health_check.go)",
	client: "the webhook refuses each WorkloadGroup with a gRPC probe",
}, {
	title:  "Endpoints_AreAnEmptyList",
	report: `only one of WorkloadSelector or Endpoints can be set|NONE mode cannot set endpoints`,
	denies: rulesDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"x","namespace":"default"},"spec":{"endpoints":[],"hosts":["a"]}}`,
	cause:  "the rules of ServiceEntry ask has(self.endpoints), which is true for an empty list; decoding makes it nil",
	client: "a ServiceEntry with endpoints: [], as a template may write it, is refused",
}, {
	title:  "Template_IsNotValidated",
	report: `spec\.template(\.address|\.ports(\[\S*\])?)?: Invalid value`,
	denies: rulesDenies,
	object: `{"apiVersion":"networking.istio.io/v1","kind":"WorkloadGroup","metadata":{"name":"x","namespace":"default"},"spec":{"template":{"ports":{"xxhayqsc":0}}}}`,
	cause:  "ValidateWorkloadGroup in pkg/config/validation/validation.go does not call validateWorkloadEntry; for the address unix://, a rule fails because it takes the eighth of seven characters",
	client: "a WorkloadGroup is refused for the address and the ports of its template",
}}

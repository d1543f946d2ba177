package corpus_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayvalidation "sigs.k8s.io/gateway-api/apis/v1/validation"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/equivalence"
)

func validator[T any](f func(*T) field.ErrorList) func(context.Context, *T) (field.ErrorList, error) {
	return func(_ context.Context, o *T) (field.ErrorList, error) { return f(o), nil }
}

func withoutRules(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.XValidations = nil
	for name, p := range s.Properties {
		withoutRules(&p)
		s.Properties[name] = p
	}
	if s.Items != nil {
		withoutRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		withoutRules(s.AdditionalProperties.Schema)
	}
}

func TestEquivalence_GatewayAPI(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	var before, after schema.Release
	for _, name := range []string{"gateways", "httproutes"} {
		text, err := os.ReadFile(filepath.Join(dir, "config/crd/standard/gateway.networking.k8s.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := schema.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		crd := d.CustomResourceDefinition()
		for i := range crd.Spec.Versions {
			if crd.Spec.Versions[i].Name == "v1beta1" {
				crd.Spec.Versions[i].Served = false
			}
		}
		if d, err = schema.New(crd); err != nil {
			t.Fatal(err)
		}
		after.Definitions = append(after.Definitions, d)
		for i := range crd.Spec.Versions {
			withoutRules(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
		if d, err = schema.New(crd); err != nil {
			t.Fatal(err)
		}
		before.Definitions = append(before.Definitions, d)
	}
	s := runtime.NewScheme()
	if err := gatewayv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	h := admission.NewHandler(s, admission.Validate(validator(gatewayvalidation.ValidateGateway)), admission.Validate(validator(gatewayvalidation.ValidateHTTPRoute)))
	before.Handler, before.Manifests = h, map[string][]byte{"webhooks.yaml": []byte(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: gateway}, webhooks: [
{name: validate.gateway.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "https://gateway.example.com/validate"},
rules: [{operations: [CREATE, UPDATE], apiGroups: [gateway.networking.k8s.io], apiVersions: [v1], resources: [gateways, httproutes]}]}]}`)}
	began := time.Now()
	report, err := equivalence.Compare(t.Context(), before, after, equivalence.Requests(3000))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(began))
	t.Log(report)
}

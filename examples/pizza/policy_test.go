package pizza

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/admission"
	"github.com/crdkit/crdkit/schema"
	"github.com/crdkit/crdkit/schema/equivalence"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/webhook/registration"
)

// withWebhook is the release that validates Toppings with a webhook.
func withWebhook(t *testing.T) schema.Release {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := registration.New("toppings",
		registration.URL("https://pizza.example.com"),
		registration.CRDs([]byte(toppingDefinition)),
		registration.Validating("cost.example.com", "/cost", admission.NewHandler(s, admission.Validate(costsSomething))),
	)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := hooks.Manifests(nil)
	if err != nil {
		t.Fatal(err)
	}
	return schema.Release{Handler: hooks, Manifests: map[string][]byte{"webhooks.yaml": manifests}}
}

// withPolicy is a release that validates them with a policy.
func withPolicy(policy string) schema.Release {
	return schema.Release{Manifests: map[string][]byte{
		"crd.yaml":    []byte(toppingDefinition),
		"policy.yaml": []byte(policy),
	}}
}

// The page docs/from-webhook-to-policy.md shows two policies, and what the test says about them.
func TestPolicy_DecidesAsWebhook(t *testing.T) {
	page := mdtest.Read(t, "../../docs/from-webhook-to-policy.md")
	page.GoIsIn(t, ".")
	policies, outputs := page.Blocks("yaml"), page.Blocks("text")
	if len(policies) != 2 || len(outputs) != 2 {
		t.Fatalf("%d policies, %d outputs", len(policies), len(outputs))
	}
	for i, right := range []bool{false, true} {
		report, err := equivalence.Compare(t.Context(), withWebhook(t), withPolicy(policies[i].Text), equivalence.Requests(600))
		if err != nil {
			t.Fatal(err)
		}
		if report.Equivalent() != right {
			t.Errorf("policy %d: got %s", i, report)
		}
		// The numbers depend on the generator.
		count := regexp.MustCompile(`\b[0-9]+\b`)
		text := func(s string) string { return count.ReplaceAllString(s, "N") }
		if diff := cmp.Diff(text(outputs[i].Text), text(report.String()+"\n")); diff != "" {
			t.Errorf("policy %d (-page +real):\n%s", i, diff)
		}
	}
	rule := strings.Replace(toppingDefinition, "description: ToppingSpec describes a topping.", "x-kubernetes-validations: [{rule: self.cost > 0}]", 1)
	withRule := schema.Release{Manifests: map[string][]byte{"crd.yaml": []byte(rule)}}
	report, err := equivalence.Compare(t.Context(), withWebhook(t), withRule, equivalence.Requests(600))
	if err != nil || !report.Equivalent() {
		t.Errorf("with a rule: %v, %s", err, report)
	}
	free := []byte("{apiVersion: restaurant.programming-kubernetes.info/v1alpha1, kind: Topping, metadata: {name: salami}, spec: {cost: 0}}")
	for name, release := range map[string]schema.Release{"policy": withPolicy(policies[1].Text), "rule": withRule} {
		report, err := equivalence.Compare(t.Context(), withWebhook(t), release, equivalence.Requests(600), equivalence.Stored(free))
		if err != nil || len(report.Differences) > 0 != (name == "rule") {
			t.Errorf("with a %s and a stored object: %v, %s", name, err, report)
		}
	}
}

package webhook_test

import (
	"os"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

func TestDoc_NetworkPolicyIsWellFormed(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	check(t, err)
	var manifest strings.Builder
	_, rest, found := strings.Cut(string(doc), "//\tapiVersion: networking.k8s.io/v1\n")
	for line := range strings.Lines("//\tapiVersion: networking.k8s.io/v1\n" + rest) {
		yamlLine, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		manifest.WriteString(yamlLine)
	}
	var policy networkingv1.NetworkPolicy
	if err := yaml.UnmarshalStrict([]byte(manifest.String()), &policy); err != nil || !found {
		t.Fatalf("%v:\n%s", err, manifest.String())
	}
	from := policy.Spec.Ingress[0].From[0].IPBlock
	if policy.Kind != "NetworkPolicy" || from == nil || policy.Spec.Ingress[0].Ports[0].Port.IntValue() != 8443 {
		t.Errorf("it lets in %+v", policy.Spec)
	}
}

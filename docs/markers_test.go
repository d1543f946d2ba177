package docs_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// controller-gen accepts the markers of the page, and makes the schema that the page shows.
func TestTroubleshooting_Markers(t *testing.T) {
	page, source := string(read(t, "troubleshooting.md")), string(read(t, "testdata/caches/types.go"))
	_, block, _ := strings.Cut(page, "```\n// +kubebuilder:validation:XIntOrString")
	block, _, _ = strings.Cut(block, "```\n")
	if unindented := strings.ReplaceAll(source, "\n\t", "\n"); block == "" || !strings.Contains(unindented, block) {
		t.Errorf("testdata/caches has other markers than the page:\n%s", block)
	}

	generate := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../hack/tools/go.mod", "controller-gen", "crd", "paths=./testdata/caches", "output:crd:stdout")
	generate.Stderr = os.Stderr
	text, err := generate.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(page, "```yaml\n# caches.yaml\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	properties := func(text string) map[string]apiextensionsv1.JSONSchemaProps {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(text), &crd); err != nil || len(crd.Spec.Versions) != 1 {
			t.Fatalf("%v in %s", err, text)
		}
		return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	}
	want, got := properties(shown), properties(string(text))
	want["timeout"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(20)), Pattern: `^-?([0-9]{1,5}(\.[0-9]+)?(ns|us|ms|s|m|h))+$`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-page +controller-gen):\n%s", diff)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
)

// The markers of the page are those of testdata/caches, of which TestTroubleshooting makes a schema.
func TestTroubleshooting_Markers(t *testing.T) {
	page, source := string(read(t, "troubleshooting.md")), string(read(t, "testdata/caches/types.go"))
	_, block, _ := strings.Cut(page, "```\n// +kubebuilder:validation:XIntOrString")
	block, _, _ = strings.Cut(block, "```\n")
	if unindented := strings.ReplaceAll(source, "\n\t", "\n"); block == "" || !strings.Contains(unindented, block) {
		t.Errorf("testdata/caches has other markers than the page:\n%s", block)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	expect.NoError(t, err)
	return text
}

package crdkit_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
)

// lossy is the folder with the test that the README shows. It is in a nested module, which has
// controller-runtime.
const lossy = "interop/controllerruntime/moving/lossy"

// TestReadme_Code checks that the Go code in the README is that of the test.
func TestReadme_Code(t *testing.T) {
	mdtest.Read(t, "README.md").GoIsIn(t, lossy)
}

// TestReadme_Failure checks that the README shows what the test prints.
func TestReadme_Failure(t *testing.T) {
	tier.VerifyOnly(t, "compares what a failing test prints with the README")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "^TestConversion$/^Backup$/^v1→v1beta1→v1$/^round-trip$", ".")
	cmd.Dir = lossy
	cmd.Env = append(os.Environ(), "CRDKIT_LOSSY=1", "CRDKIT_ROUNDTRIP_SEED=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the loss was not found:\n%s", out)
	}
	for _, b := range mdtest.Read(t, "README.md").Blocks("") {
		if !strings.Contains(b.Text, "the round-trip law") {
			continue
		}
		for line := range strings.Lines(b.Text) {
			if !strings.Contains(string(out), strings.TrimSpace(line)) {
				t.Errorf("the test does not print %q:\n%s", line, out)
			}
		}
		return
	}
	t.Error("the README does not show the failure")
}

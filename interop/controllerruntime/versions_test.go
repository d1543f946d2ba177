package controllerruntime_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/crdkit/crdkit/internal/testing/tier"
)

// TestVersions_Latest runs the tests of this module with the controller-runtime that bench has,
// which is the latest. The module requires the oldest that works, so that importers need not
// upgrade.
func TestVersions_Latest(t *testing.T) {
	tier.VerifyOnly(t, "runs all tests of the module again")
	var files [4][]byte
	for i, name := range []string{"go.mod", "go.sum", "../../bench/go.mod", "../../bench/go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = text
	}
	required := regexp.MustCompile(`sigs\.k8s\.io/controller-runtime v\S+`)
	oldest, latest := required.Find(files[0]), required.Find(files[2])
	if oldest == nil || latest == nil || slices.Equal(oldest, latest) {
		t.Fatalf("this module requires %s, and bench %s", oldest, latest)
	}
	mod := filepath.Join(t.TempDir(), "go.mod")
	for name, text := range map[string][]byte{
		mod: required.ReplaceAll(files[0], latest),
		filepath.Join(filepath.Dir(mod), "go.sum"): slices.Concat(files[1], files[3]),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-mod=mod", "-modfile="+mod, "./...")
	cmd.Env = append(os.Environ(), tier.Variable+"=") // not this test again
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", latest, err, out)
	}
}

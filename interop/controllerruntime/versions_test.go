package controllerruntime_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// logLine is a line that klog has written. A package that fails has thousands of them.
var logLine = regexp.MustCompile(`(?m)^[IWEF]\d{4} .*\n`)

// TestVersions_Oldest runs the tests of this module with an earlier controller-runtime. The
// test that it leaves out needs a webhook server that does not listen, which is new in v0.25.
func TestVersions_Oldest(t *testing.T) {
	tier.VerifyOnly(t, "runs all tests of the module again")
	const (
		required = "sigs.k8s.io/controller-runtime v0.25.2"
		oldest   = "sigs.k8s.io/controller-runtime v0.24.1"
		sums     = oldest + " h1:miPEwrmirImAvgME1L9qebGHrOnGJoVmVdtOU9fRfo4=\n" +
			oldest + "/go.mod h1:vFkfY5fGt5xAC/sKb8IBFKgWPNKG9OUG29dR8Y2wImw=\n"
	)
	read := func(name string) string {
		text, err := os.ReadFile(name)
		expect.NoError(t, err)
		return string(text)
	}
	mod := filepath.Join(t.TempDir(), "go.mod")
	for name, text := range map[string]string{
		mod: strings.Replace(read("go.mod"), required, oldest, 1),
		filepath.Join(filepath.Dir(mod), "go.sum"): read("go.sum") + sums,
	} {
		expect.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), tier.Variable+"=") // not this test again
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("go %q: %v\n%s", args, err, logLine.ReplaceAll(out, nil))
		}
		return strings.TrimSpace(string(out))
	}
	if got := run("list", "-m", "-modfile="+mod, "sigs.k8s.io/controller-runtime"); got != oldest {
		t.Errorf("got %s, want %s", got, oldest)
	}
	run("test", "-vet=off", "-modfile="+mod, "-skip", "^TestManager_WithoutCluster$", "./...")
}

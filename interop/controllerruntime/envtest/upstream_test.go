package envtest_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// TestSuite_Upstream runs kubebuilder's suite of ../moving/step0 with this package, and, after the change of one
// import, with upstream's on kube-apiserver and etcd. It logs the median times of the two, which run in turn.
func TestSuite_Upstream(t *testing.T) {
	tier.VerifyOnly(t, "runs a suite five times with each of two packages")
	if err := controlplane.Available(); err != nil && os.Getenv("CRDKIT_REQUIRE_CONTROLPLANE") != "1" {
		t.Skip(err)
	}
	const (
		folder   = "../moving/step0"
		ours     = `	"github.com/crdkit/crdkit/interop/controllerruntime/envtest"`
		upstream = `	"sigs.k8s.io/controller-runtime/pkg/envtest"`
	)
	suite, err := filepath.Abs(filepath.Join(folder, "webhook_suite_test.go"))
	expect.NoError(t, err)
	text, err := os.ReadFile(suite)
	expect.NoError(t, err)
	if strings.Count(string(text), ours+"\n") != 1 {
		t.Fatalf("%s does not import%s", suite, ours)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "suite.go"), filepath.Join(dir, "overlay.json")
	expect.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), ours, upstream, 1)), 0o600))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{suite: changed}})
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(overlay, replace, 0o600))

	assets, err := filepath.Abs("../../../hack/controlplane/bin")
	expect.NoError(t, err)
	assets = cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), assets)
	run := func(dir, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=5m")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	run(folder, "go", "test", "-c", "-o", filepath.Join(dir, "ours"))
	run(folder, "go", "test", "-c", "-o", filepath.Join(dir, "upstream"), "-overlay", overlay)
	times := map[string][]time.Duration{}
	for range 5 {
		for _, binary := range []string{"ours", "upstream"} {
			begin := time.Now()
			run(folder, filepath.Join(dir, binary))
			times[binary] = append(times[binary], time.Since(begin).Round(10*time.Millisecond))
		}
	}
	median := func(binary string) time.Duration {
		slices.Sort(times[binary])
		return times[binary][len(times[binary])/2]
	}
	t.Logf("median of five: this package %v, upstream %v (%v)", median("ours"), median("upstream"), times)
}

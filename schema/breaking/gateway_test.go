package breaking_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/tier"
)

// gatewayAPI returns a definition of a release of the Gateway API, which the go command downloads.
func gatewayAPI(t *testing.T, release, file string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api@"+release)
	cmd.Dir = t.TempDir() // outside of this module
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil {
		t.Skip("the Gateway API cannot be downloaded:", err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "config/crd/experimental", file))
	expect.NoError(t, err)
	return string(text)
}

// Changes of the Gateway API are proven, by small objects.
// Some rules stay unproven: the old ones imply them, or they are about more than 128 matches.
func TestChanges_GatewayAPI(t *testing.T) {
	tier.VerifyOnly(t, "searches hundreds of fields under dozens of CEL rules")
	for _, test := range []struct {
		old, new, kind string
		unproven, size int
	}{
		{"v1.0.0", "v1.5.1", "gateways", 4, 10_000},
		{"v1.0.0", "v1.5.1", "httproutes", 2, 10_000},
		{"v1.4.1", "v1.5.1", "httproutes", 0, 20_000},
	} {
		t.Run(test.kind+" "+test.old, func(t *testing.T) {
			file := "gateway.networking.k8s.io_" + test.kind + ".yaml"
			unproven, size := 0, 0
			for _, c := range changes(t, gatewayAPI(t, test.old, file), gatewayAPI(t, test.new, file)) {
				if c.Unproven {
					unproven++
					t.Log(c)
				}
				if c.Proof != nil {
					size += len(c.Proof.Object) + len(c.Proof.Stored)
				}
			}
			t.Logf("%d changes are unproven, and the proofs have %d bytes", unproven, size)
			if unproven > test.unproven || size > test.size {
				t.Errorf("%d changes are unproven, want at most %d; the proofs have %d bytes, want at most %d", unproven, test.unproven, size, test.size)
			}
		})
	}
}

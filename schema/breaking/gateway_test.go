package breaking_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/crdkit/crdkit/internal/testing/tier"
	"github.com/crdkit/crdkit/schema/breaking"
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
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Changes of the Gateway API are proven.
// Some rules stay unproven: the old ones imply them, or they are about more than 128 matches.
func TestChanges_GatewayAPI(t *testing.T) {
	tier.VerifyOnly(t, "searches hundreds of fields under dozens of CEL rules")
	unproven := 0
	for _, file := range []string{"gateway.networking.k8s.io_gateways.yaml", "gateway.networking.k8s.io_httproutes.yaml"} {
		old, new := definition(t, gatewayAPI(t, "v1.0.0", file)), definition(t, gatewayAPI(t, "v1.5.1", file))
		changes, err := breaking.Changes(t.Context(), old, new)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if c.Unproven {
				unproven++
				t.Log(c)
			}
		}
	}
	if unproven > 10 {
		t.Errorf("%d changes are unproven, want at most 10", unproven)
	}
}

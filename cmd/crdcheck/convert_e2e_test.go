package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

// The server refuses a definition of v1beta1 with the words of lint, and takes what convert prints.
func TestConvert_IsTakenByTheServer(t *testing.T) {
	t.Parallel()
	cp := controlplane.Shared(t)
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	home := t.TempDir()
	apply := func(text string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), cp.Kubectl(), "--kubeconfig="+kubeconfig, "create", "--dry-run=server", "--validate=strict", "-f", "-")
		cmd.Env = append(os.Environ(), "HOME="+home) // of kubectl's cache
		cmd.Stdin = strings.NewReader(text)
		output, _ := cmd.CombinedOutput() // which has the error too
		return string(output)
	}
	old := content(t, "testdata/old.yaml")
	_, lint, _ := run(t, old, "lint", "-")
	const fault = `no matches for kind "CustomResourceDefinition" in version "apiextensions.k8s.io/v1beta1"`
	if output := apply(old); !strings.Contains(output, fault) || !strings.Contains(lint, fault) {
		t.Errorf("kubectl: %s, lint: %s; want %s of both", output, lint, fault)
	}
	_, converted, stderr := run(t, old, "convert", "-")
	if output := apply(converted); !strings.Contains(output, "mixers.restaurant.example.com created") {
		t.Errorf("kubectl: %s; %s", output, stderr)
	}
}

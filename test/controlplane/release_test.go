package controlplane

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
)

// The release is that of the module.
func TestRelease_MatchesModule(t *testing.T) {
	text, err := os.ReadFile("../../hack/controlplane/go.mod")
	expect.NoError(t, err)
	if want := fmt.Sprintf("k8s.io/kubernetes v1.%d.", Release); !strings.Contains(string(text), want) {
		t.Errorf("hack/controlplane has no %s: run the tests that Release holds back with what it has, and change it", want)
	}
}

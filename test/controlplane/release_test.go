package controlplane

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The release is that of the module.
func TestRelease_MatchesModule(t *testing.T) {
	text, err := os.ReadFile("../../hack/controlplane/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("k8s.io/kubernetes v1.%d.", Release); !strings.Contains(string(text), want) {
		t.Errorf("hack/controlplane has no %s: run the tests that Release holds back with what it has, and change it", want)
	}
}

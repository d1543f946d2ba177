package crdkit_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/examples/pizza/api/v1alpha1"
	"github.com/crdkit/crdkit/examples/pizza/api/v1beta1"
	"github.com/crdkit/crdkit/internal/testing/mdtest"
	"github.com/crdkit/crdkit/internal/testing/tier"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/scheme"
)

// TestReadme checks that the Go code in the README and in the tour is compiled: here, or in
// the example that it is about.
func TestReadme(t *testing.T) {
	mdtest.Read(t, "README.md").GoIsIn(t, ".", "interop/controllerruntime/moving/step2")
	mdtest.Read(t, "docs/tour.md").GoIsIn(t, ".", "examples/pizza")
}

// TestReadme_Bug checks that the README shows what a round trip of its conversions prints.
func TestReadme_Bug(t *testing.T) {
	tier.VerifyOnly(t, "compares what a failing test prints with the README")
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestConversion$/^Pizza$/^v1alpha1→v1beta1→v1alpha1$/^round-trip$", ".")
	cmd.Env = append(os.Environ(), buggy+"=1", "CRDKIT_ROUNDTRIP_SEED=4510058352103427008")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the bug was not found:\n%s", out)
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
	t.Error("the README does not show the bug")
}

// buggy names the variable with which the test of the README runs.
const buggy = "CRDKIT_README"

func TestConversion(t *testing.T) {
	if os.Getenv(buggy) == "" {
		t.Skip("fails as the README shows: TestReadme_Bug runs it")
	}
	s, err := scheme.New(
		scheme.Version(v1beta1.GroupVersion, &v1beta1.Pizza{}, &v1beta1.PizzaList{}),
		scheme.Version(v1alpha1.GroupVersion, &v1alpha1.Pizza{}, &v1alpha1.PizzaList{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	reg := conversion.NewRegistry(s)
	if err := conversion.AddSpoke(reg, pizzaToHub, pizzaFromHub); err != nil {
		t.Fatal(err)
	}
	crdYAML, err := os.ReadFile("examples/pizza/config/crd/restaurant.programming-kubernetes.info_pizzas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, reg, roundtrip.CRD(crdYAML))
}

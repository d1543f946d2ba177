package matrix

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

// Packages are those whose tests have the harness.
func TestWithHarness(t *testing.T) {
	const list = `example.com/a
example.com/a.test os example.com/a testing
example.com/b os github.com/crdkit/crdkit/test/controlplane
example.com/c.test os github.com/crdkit/crdkit/test/controlplane testing
example.com/c [example.com/c.test] github.com/crdkit/crdkit/test/controlplane
example.com/d.test os github.com/crdkit/crdkit/test/controlplane [example.com/d.test]
`
	if diff := cmp.Diff([]string{"example.com/c", "example.com/d"}, withHarness(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The tests of a module are run at once.
func TestArguments(t *testing.T) {
	want := []string{"test", "-json", "-count=1", "-timeout", "30m", "-run", "^(TestA|TestB)$", "p", "q"}
	got := arguments([]Test{{".", "q", "TestA"}, {".", "p", "TestB"}, {".", "p", "TestA"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The tests of this package have a control plane in their dependencies, and need none; those
// of package controlplane need one.
func TestPackagesIn_ThisModule(t *testing.T) {
	packages, err := packagesIn(t.Context(), "../..")
	expect.NoError(t, err)
	found := map[string]bool{}
	for _, p := range packages {
		found[p] = true
	}
	for p, want := range map[string]bool{harness: true, harness[:len(harness)-len("controlplane")] + "matrix": true, "github.com/crdkit/crdkit/conversion": true, "github.com/crdkit/crdkit/scheme": false} {
		if found[p] != want {
			t.Errorf("%s: found is %t", p, found[p])
		}
	}
}

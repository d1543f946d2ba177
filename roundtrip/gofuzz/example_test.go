package gofuzz_test

import (
	"flag"
	"fmt"
	"testing"

	fuzz "github.com/google/gofuzz"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/roundtrip/gofuzz"
)

func ExampleFuncs() {
	// The tests of the operator already have this function.
	clusterFuncs := func(serializer.CodecFactory) []any {
		return []any{
			func(m *oldMachine, c fuzz.Continue) {
				c.FuzzNoCustom(m)
				m.Spec.FailFast = nil // has been removed in v1beta1
				if m.Spec.MinCPU == nil {
					m.Spec.MinCPU = new(4) // must be there in v1beta1
				}
			},
			func(e *effect, c fuzz.Continue) { *e = "NoSchedule" },
		}
	}

	testConversion := func(t *testing.T) {
		roundtrip.Test(t, machines(t, toOld), roundtrip.Funcs(gofuzz.Funcs(clusterFuncs)...), withoutPartial)
	}
	fmt.Println("passes:", run(testConversion))
	// Output: passes: true
}

// run runs a test without output, and reports whether it passes.
func run(test func(t *testing.T)) bool {
	verbose := flag.Lookup("test.v").Value
	defer verbose.Set(verbose.String())
	verbose.Set("false")
	all := func(string, string) (bool, error) { return true, nil }
	return testing.RunTests(all, []testing.InternalTest{{Name: "TestConversion", F: test}})
}

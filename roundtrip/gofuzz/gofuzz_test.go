package gofuzz_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	fuzz "github.com/google/gofuzz"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/roundtrip"
	"github.com/crdkit/crdkit/roundtrip/gofuzz"
	"github.com/crdkit/crdkit/test/expect"
)

// Functions of an operator work unchanged.
func TestFuncs_OfAnOperator(t *testing.T) {
	roundtrip.Test(t, machines(t, toOld), roundtrip.Funcs(gofuzz.Funcs(machineFuncs)...), withoutPartial, roundtrip.Iterations(200))
}

var withoutPartial = roundtrip.SkipLaw(roundtrip.Partial, "a machine without minCPU gets one")

// fill fills a value by functions alone, without those of package roundtrip.
func fill(v any, src *choices.Source, functions ...any) {
	f := randfill.New().NilChance(0.2).NumElements(0, 3).RandSource(src)
	for _, list := range gofuzz.Funcs(functions...) {
		f.Funcs(list.(func(serializer.CodecFactory) []any)(serializer.NewCodecFactory(runtime.NewScheme()))...)
	}
	f.Funcs(func(v **apiextensionsv1.JSON, c randfill.Continue) { *v = nil })
	// Not what gofuzz could make.
	f.Funcs(func(m *metav1.ObjectMeta, c randfill.Continue) { m.Name = "randfill" })
	f.Funcs(func(m **metav1.ObjectMeta, c randfill.Continue) { *m = &metav1.ObjectMeta{Name: "randfill"} })
	f.Funcs(func(v *runtime.RawExtension, c randfill.Continue) { v.Raw = []byte(`"randfill"`) })
	f.Fill(v)
}

// An object is made of its draws.
func TestFuncs_Deterministic(t *testing.T) {
	different := map[string]bool{}
	for i := range 50 {
		src := choices.New(1, "name", i)
		var m, again oldMachine
		fill(&m, src, machineFuncs)
		fill(&again, choices.Replay(src.Tree()), machineFuncs)
		want, err := json.Marshal(m)
		expect.NoError(t, err)
		got, err := json.Marshal(again)
		expect.NoError(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
		different[string(want)] = true
	}
	if len(different) < 40 {
		t.Errorf("of 50 objects, %d differ", len(different))
	}
}

// A function reaches the others and those of roundtrip.
func TestFuncs_ReachTheOthers(t *testing.T) {
	taints, labels := 0, 0
	for i := range 50 {
		var m oldMachine
		fill(&m, choices.New(1, "name", i), machineFuncs)
		if m.Name != "randfill" || m.Spec.Template.Name != "randfill" || string(m.Spec.Extra.Raw) != `"randfill"` {
			t.Fatalf("not filled by randfill: %+v", m)
		}
		if !strings.HasPrefix(m.Spec.Provider, "example://") || m.Spec.MinCPU == nil || m.Spec.FailFast != nil {
			t.Fatalf("not filled by the functions: %+v", m)
		}
		for _, taint := range m.Spec.Taints {
			if taints++; taint.Key != "example.com/taint" || !strings.Contains(string(taint.Effect), "No") {
				t.Fatalf("not filled by the functions for parts: %+v", taint)
			}
		}
		for name := range m.Spec.Labels {
			if labels++; !strings.HasPrefix(name, "node.example.com/") {
				t.Fatalf("not filled by the function for maps: %q", name)
			}
		}
	}
	if taints == 0 || labels == 0 {
		t.Errorf("%d taints and %d labels", taints, labels)
	}
}

// A function for a type of roundtrip takes its place.
func TestFuncs_TypeOfRoundtrip(t *testing.T) {
	var m oldMachine
	fill(&m, choices.New(1, "name", 1),
		func(m *oldMachine, c fuzz.Continue) { c.FuzzNoCustom(m) },
		func(r *runtime.RawExtension, c fuzz.Continue) { r.Raw = []byte(`"gofuzz"`) })
	if got := string(m.Spec.Extra.Raw); got != `"gofuzz"` {
		t.Errorf("got %s", got)
	}
}

// Lists may hold functions for either library.
func TestFuncs_EitherLibrary(t *testing.T) {
	mixed := fuzzer.MergeFuzzerFuncs(machineFuncs, func(serializer.CodecFactory) []any {
		return []any{
			func(t *taint, c randfill.Continue) { t.Key = "randfill" },
			func(l nodeLabels, c randfill.Continue) { l["randfill"] = "" },
		}
	})
	taints, labels := 0, 0
	for i := range 20 {
		var m oldMachine
		fill(&m, choices.New(1, "name", i), mixed)
		for _, taint := range m.Spec.Taints {
			if taints++; taint.Key != "randfill" {
				t.Fatalf("the last function for a type does not count: %+v", taint)
			}
		}
		for name := range m.Spec.Labels {
			if labels++; name != "randfill" {
				t.Fatalf("the last function for a map does not count: %q", name)
			}
		}
	}
	if taints == 0 || labels == 0 {
		t.Errorf("%d taints and %d labels", taints, labels)
	}
}

// Of zeros, functions come to an end.
// Beyond its end a stream is zeros.
func TestFuncs_Zeros(t *testing.T) {
	type tree struct{ Left, Right *tree }
	var m oldMachine
	fill(&m, choices.Replay(nil), machineFuncs)
	var root tree
	fill(&root, choices.Replay(nil), func(t *tree, c fuzz.Continue) {
		if c.Intn(2) == 1 {
			c.FuzzNoCustom(t)
		}
	})
	if diff := cmp.Diff(tree{}, root); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUser is what [runTestOfAUser] runs, in a process of its own: the tests in which
// roundtrip.Test fails.
func TestUser(t *testing.T) {
	forgets := func(ctx context.Context, in *newMachine, out *oldMachine) error {
		err := toOld(ctx, in, out)
		out.Spec.Taints = nil
		return err
	}
	functions := map[string]any{
		"forgets":        machineFuncs,
		"no function":    "nothing",
		"nil":            nil,
		"one argument":   func(*taint) {},
		"not a pointer":  func(taint, fuzz.Continue) {},
		"not a continue": func(*taint, int) {},
	}
	which := os.Getenv("TEST_OF_A_USER")
	f, ok := functions[which]
	if !ok {
		t.Skip("other tests run it")
	}
	roundtrip.Test(t, machines(t, forgets), roundtrip.Funcs(gofuzz.Funcs(f)...), withoutPartial, roundtrip.Iterations(200))
}

func runTestOfAUser(t *testing.T, which, pattern string) (output string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", pattern)
	cmd.Env = append(os.Environ(), "TEST_OF_A_USER="+which)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s: the test passes", which)
	}
	return string(out)
}

// The smallest object is one that the functions make.
func TestFuncs_SmallestObject(t *testing.T) {
	for _, path := range []string{"v1alpha4→v1beta1→v1alpha4", "v1beta1→v1alpha4→v1beta1"} {
		output := runTestOfAUser(t, "forgets", "^TestUser$/^Machine$/^"+path+"$")
		object := regexp.MustCompile(`(?s)the round-trip law does not hold for this object:\n\s*\n(.*?)\n\s*\n\s*the difference`).FindStringSubmatch(output)
		if object == nil {
			t.Fatalf("%s: no object:\n%s", path, output)
		}
		if n := strings.Count(object[1], "\n"); n > 15 {
			t.Errorf("%d lines:\n%s", n, object[1])
		}
		var m newMachine
		text, err := yaml.YAMLToJSON([]byte(regexp.MustCompile(`(?m)^\s*\t`).ReplaceAllString(object[1], "")))
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, object[1])
		}
		want := newSpec{Common: Common{Provider: "example://", Taints: []taint{{"example.com/taint", "NoExecute"}}}}
		if m.APIVersion == "infrastructure.example.com/v1alpha4" {
			want.MinCPU = 4
		}
		m.Spec.Memory, m.Spec.Extra = want.Memory, want.Extra // the least that there is of them
		if diff := cmp.Diff(want, m.Spec); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A value that is not a function is reported.
func TestFuncs_NoFunction(t *testing.T) {
	for which, want := range map[string]string{
		"no function":    "roundtrip.Funcs: gofuzz.Funcs: string is not a function for gofuzz",
		"nil":            "roundtrip.Funcs: gofuzz.Funcs: <nil> is not a function for gofuzz",
		"one argument":   "roundtrip.Funcs: gofuzz.Funcs: func(*gofuzz_test.taint) is not a function for gofuzz",
		"not a pointer":  "roundtrip.Funcs: gofuzz.Funcs: func(gofuzz_test.taint, fuzz.Continue) is not a function for gofuzz",
		"not a continue": "roundtrip.Funcs: gofuzz.Funcs: the second argument of func(*gofuzz_test.taint, int) is not a fuzz.Continue",
	} {
		if output := runTestOfAUser(t, which, "^TestUser$"); !strings.Contains(output, want) {
			t.Errorf("%s: no %q in:\n%s", which, want, output)
		}
	}
}

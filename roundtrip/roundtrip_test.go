package roundtrip

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/crdkit/crdkit/conversion"
	"github.com/crdkit/crdkit/internal/choices"
	"github.com/crdkit/crdkit/test/expect"
)

// TestUser is what [runTestOfAUser] runs, in a process of its own: the tests in which
// Test fails.
func TestUser(t *testing.T) {
	which := os.Getenv("TEST_OF_A_USER")
	if which == "" {
		t.Skip("other tests run it")
	}
	jobs := Funcs(jobFuncs...)
	switch which {
	case "dropped":
		Test(t, bugs[0].jobs(t), jobs)
	case "without":
		Test(t, bugs[0].jobs(t), jobs, SkipLaw(RoundTrip, "notes are going away"), SkipLaw(Partial, "so they are"))
	case "old hub":
		reg := conversion.NewRegistry(bug{}.jobs(t).Scheme())
		err := conversion.AddSpoke(reg,
			func(_ context.Context, in *hubJob, out *alphaJob) error { fromHub(in, out); return nil },
			func(_ context.Context, in *alphaJob, out *hubJob) error { toHub(in, out); return nil })
		expect.NoError(t, err)
		Test(t, reg, jobs)
	case "options":
		Test(t, bugs[0].jobs(t), SkipLaw("gravity", "it is heavy"), SkipLaw(Partial, ""), Iterations(0))
	case "not a function":
		Test(t, bugs[0].jobs(t), Funcs("not a function"))
	case "incomplete":
		Test(t, conversion.NewRegistry(runtime.NewScheme()))
	case "untyped":
		Test(t, untyped(t, runtime.NewScheme()))
	case "killed":
		Test(t, bug{toHub: inSpec(func(in, _ *Common) {
			if len(in.Tags) > 2 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		})}.jobs(t), jobs)
	}
}

func runTestOfAUser(t *testing.T, which, pattern string, env ...string) (output string, failed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", pattern)
	cmd.Env = append(append(os.Environ(), "TEST_OF_A_USER="+which), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err != nil
}

// The report shows the object, and its command reproduces it.
func TestReport_Reproduces(t *testing.T) {
	output, failed := runTestOfAUser(t, "dropped", "^TestUser$")
	const subtest = "TestUser/Job/v1alpha1→v1→v1alpha1/round-trip"
	if !failed || !strings.Contains(output, "--- FAIL: "+subtest) {
		t.Fatalf("%s does not fail:\n%s", subtest, output)
	}
	const again = "The partial law does not hold either: v1alpha1→v1→v1alpha1/round-trip has the report. "
	if strings.Count(output, " law does not hold for this object:") != 1 || strings.Count(output, again) != 2 {
		t.Errorf("want one report, and two lines %s:\n%s", again, output)
	}
	command := regexp.MustCompile(`(CRDKIT_ROUNDTRIP_SEED=\d+) (CRDKIT_ROUNDTRIP_ITERATIONS=\d+) go test -run '(.*)' \.`)
	report := func(output string) string {
		_, after, _ := strings.Cut(output, "Job v1alpha1→v1→v1alpha1: the round-trip law")
		before, _, _ := strings.Cut(after, "--- FAIL")
		return before[:strings.Index(before, " go test -run")]
	}
	for _, want := range []string{"apiVersion: batch.example.com/v1alpha1\n", "note: ", "-want +got", "\t- spec.note: "} {
		if !strings.Contains(report(output), want) {
			t.Errorf("the report lacks %q:\n%s", want, report(output))
		}
	}
	var found []string
	for _, c := range command.FindAllStringSubmatch(output, -1) {
		if strings.HasSuffix(c[3], "/^Job$/^v1alpha1→v1→v1alpha1$/^round-trip$") {
			found = c
		}
	}
	if found == nil {
		t.Fatalf("no command in:\n%s", output)
	}
	alone, failed := runTestOfAUser(t, "dropped", found[3], found[1], found[2])
	if !failed || strings.Count(alone, " law does not hold") != 1 {
		t.Errorf("%s does not fail, or not alone:\n%s", found[0], alone)
	}
	if diff := cmp.Diff(report(output), report(alone)); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

// A test that does not end by itself leaves its seed.
func TestTest_KilledLeavesSeed(t *testing.T) {
	output, failed := runTestOfAUser(t, "killed", "^TestUser$")
	if !failed || !regexp.MustCompile(`(?m)^TestUser: CRDKIT_ROUNDTRIP_SEED=\d+$`).MatchString(output) {
		t.Errorf("no seed in:\n%s", output)
	}
}

// Test says that an old version is the hub.
func TestTest_OldVersionIsTheHub(t *testing.T) {
	const note = "v1alpha1 is the hub, and v1 is not"
	for which, want := range map[string]bool{"old hub": true, "without": false} {
		output, failed := runTestOfAUser(t, which, "^TestUser$", "CRDKIT_ROUNDTRIP_ITERATIONS=1")
		if failed || strings.Contains(output, note) != want {
			t.Errorf("%s: want %q: %v, got:\n%s", which, note, want, output)
		}
	}
}

// A law that is left out is skipped with its reason.
func TestWithout_Skips(t *testing.T) {
	output, failed := runTestOfAUser(t, "without", "^TestUser$", "CRDKIT_ROUNDTRIP_ITERATIONS=50")
	if failed || strings.Count(output, "notes are going away") != 2 || strings.Count(output, "--- SKIP") != 4 {
		t.Errorf("got:\n%s", output)
	}
}

// A test that makes no sense fails at once.
func TestTest_MakesNoSense(t *testing.T) {
	for _, c := range []struct {
		which, env string
		want       []string
	}{
		{"options", "CRDKIT_ROUNDTRIP_SEED=-1", []string{`"gravity"`, `"partial"`, "0 objects prove nothing", "CRDKIT_ROUNDTRIP_SEED"}},
		{"dropped", "CRDKIT_ROUNDTRIP_ITERATIONS=many", []string{`"many" is not a number of objects`}},
		{"not a function", "", []string{"roundtrip.Funcs: Filler.Funcs: all arguments must be functions"}},
		{"incomplete", "", []string{"the registry has no conversions"}},
		{"untyped", "", []string{"register the type of one version in the scheme"}},
	} {
		output, failed := runTestOfAUser(t, c.which, "^TestUser$", c.env)
		if !failed {
			t.Errorf("%s passes", c.which)
		}
		for _, want := range c.want {
			if !strings.Contains(output, want) {
				t.Errorf("%s: no %q in:\n%s", c.which, want, output)
			}
		}
	}
}

// untyped has no Go types of its own.
func untyped(t *testing.T, s *runtime.Scheme) *conversion.Registry {
	t.Helper()
	rename := func(from, to string) func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
		return func(_ context.Context, in, out *unstructured.Unstructured) error {
			spec, found, err := unstructured.NestedMap(in.Object, "spec")
			if !found || err != nil {
				return err
			}
			if v, ok := spec[from]; ok {
				delete(spec, from)
				spec[to] = v
			}
			return unstructured.SetNestedMap(out.Object, spec, "spec")
		}
	}
	reg := conversion.NewRegistry(s)
	job := schema.GroupKind{Group: "batch.example.com", Kind: "Job"}
	expect.NoError(t, conversion.AddUnstructuredSpoke(reg, job.WithVersion("v1alpha1"), "v1", rename("remark", "note"), rename("note", "remark")))
	expect.NoError(t, conversion.AddFields(reg, job.WithVersion("v1beta1"), "v1", conversion.Rename("spec.repeat", "spec.replicas")))
	return reg
}

// Objects of a version without a Go type are converted from one that has it.
func TestGenerator_VersionWithoutGoType(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "batch.example.com", Version: "v1", Kind: "Job"}, &hubJob{})
	// An object that is there and empty does not come back from AddFields: here, a spec
	// always has a memory.
	memory := func(a *amount, _ randfill.Continue) { *a = "1Gi" }
	// Larger numbers are floats in an unstructured object.
	total := func(n *uint64, c randfill.Continue) { *n = c.Uint64() >> 11 }
	Test(t, untyped(t, s), Funcs(append(jobFuncs, memory, total)...), Iterations(30))
}

// Tests run in parallel.
func TestTest_Parallel(t *testing.T) {
	reg := bug{}.jobs(t)
	for range 2 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			Test(t, reg, Funcs(jobFuncs...), Iterations(20), Seed(1))
		})
	}
}

// Beyond its end a stream is zeros, and an object is a function of its draws.
func TestGenerator_Deterministic(t *testing.T) {
	reg := bug{}.jobs(t)
	g, err := newTypeGenerator(reg, &config{funcs: jobFuncs, generators: map[generatorKey]generator{}}, reg.Kinds()[0], "v1")
	expect.NoError(t, err)
	for i := range 20 {
		src := choices.New(1, "name", i)
		object, err := g.object(t.Context(), src)
		expect.NoError(t, err)
		again, err := g.object(t.Context(), choices.Replay(src.Tree()))
		expect.NoError(t, err)
		if diff := cmp.Diff(string(object), string(again)); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	}
}

func TestCompare_Strict(t *testing.T) {
	texts := []string{`{}`, `{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":""}`, `{"a":0}`, `{"a":0.0}`, `{"a":9007199254740992}`, `{"a":9007199254740993}`}
	for i, a := range texts {
		for j, b := range texts {
			if same := compare([]byte(a), []byte(b)) == nil; same != (i == j) {
				t.Errorf("%s and %s: same is %v", a, b, same)
			}
		}
	}
	if f := compare([]byte(`{"a":1,"b":2}`), []byte(`{"b":2, "a":1}`)); f != nil {
		t.Error("the order of members counts")
	}
}

// A function that waits for a value that zeros never give must not hang: such an object is
// not made.
func TestGenerator_FunctionDoesNotEnd(t *testing.T) {
	insists := func(m *mode, c randfill.Continue) {
		for *m == "" {
			*m = mode(strings.Repeat("x", c.Intn(3)))
		}
	}
	begin := time.Now()
	b := bugs[0]
	cfg := &config{funcs: append(jobFuncs, insists), seed: 1, generators: map[generatorKey]generator{}}
	reg := b.jobs(t)
	c, err := subjects(reg, cfg, reg.Kinds()[0])[0].search(t.Context(), cfg.budget(10))
	if err != nil || c == nil {
		t.Fatalf("got %v, %v", c, err)
	}
	var job hubJob
	if err := json.Unmarshal(c.object, &job); err != nil || job.Spec.Mode == "" || len(c.yaml()) > 200 {
		t.Errorf("%v, after %v:\n%s", err, time.Since(begin), c.yaml())
	}
}

// The report of a panic shows where it is.
func TestReport_Panic(t *testing.T) {
	c := bugNamed(t, "panic without spec").find(t, 1, Partial)[Partial]
	if c == nil {
		t.Fatal("nothing is found")
	}
	for _, want := range []string{"panic: runtime error: invalid memory address", "where it panics:\n\n\t", "catalogue_test.go:"} {
		if !strings.Contains(c.report(), want) {
			t.Errorf("no %q in:\n%s", want, c.report())
		}
	}
	for _, not := range []string{"runtime/debug.Stack", "conversion.(*worker)"} {
		if strings.Contains(c.report(), not) {
			t.Errorf("%q in:\n%s", not, c.report())
		}
	}
}

// Functions of Kubernetes are accepted.
// Those that Kubernetes has for its own metadata make objects too.
func TestFuncs_OfKubernetes(t *testing.T) {
	list := func(serializer.CodecFactory) []any { return jobFuncs }
	Test(t, bug{}.jobs(t), Funcs(fuzzer.FuzzerFuncs(metafuzzer.Funcs), list, fuzzer.MergeFuzzerFuncs(list)), Iterations(20))
}

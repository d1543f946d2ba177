package roundtrip

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

// slow is the variable that lets TestBudget_Slow run in a process of its own, because it fails.
const slow = "CRDKIT_ROUNDTRIP_TEST_SLOW"

// TestBudget_Slow checks conversions that take long, one of which drops a field.
func TestBudget_Slow(t *testing.T) {
	if os.Getenv(slow) == "" {
		t.Skip("TestBudget_TimeoutKeepsReports runs it")
	}
	b := bug{toHub: inSpec(func(_, out *Common) {
		time.Sleep(20 * time.Millisecond)
		out.Note = ""
	})}
	Test(t, b.jobs(t), Funcs(jobFuncs...))
}

// The tests stop before the timeout of go test, report what they have found, and say how much they have
// checked. With a number of objects, to check fewer is a failure.
func TestBudget_TimeoutKeepsReports(t *testing.T) {
	t.Parallel()
	run := func(environment ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout=10s", "-test.run=^TestBudget_Slow$")
		cmd.Env = append(os.Environ(), append(environment, slow+"=1")...)
		out, err := cmd.CombinedOutput()
		if err == nil || strings.Contains(string(out), "panic: test timed out") {
			t.Errorf("%v:\n%s", err, out)
		}
		return string(out)
	}
	const fewer = "--- FAIL: TestBudget_Slow/Job/v1alpha1→v1/defaulting"
	for _, variable := range []string{"", iterationsVariable + "=1000"} {
		out := run(variable)
		for _, want := range []string{"law does not hold for this object", "the time is over after ", "see roundtrip.Iterations"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", variable, want, out)
			}
		}
		if got := strings.Contains(out, fewer); got != (variable != "") {
			t.Errorf("%s: fewer objects are a failure: %v\n%s", variable, got, out)
		}
	}
}

// The report names missing fields, and no list that cannot have two elements.
func TestCoverage_NamesWhatIsMissing(t *testing.T) {
	reg := routes(t, byHost, false)
	cfg, err := newConfigFor(reg, []Option{CRD([]byte(strings.ReplaceAll(routeDefinition, "%[1]s", "maxItems: 1,")))})
	expect.NoError(t, err)
	s := subjects(reg, cfg, reg.Kinds()[0])[0]
	g, err := s.generator(s.path[0])
	expect.NoError(t, err)
	c := newCoverage(g.leaves())
	c.add([]byte(`{"spec": {"timeout": 1, "rules": [{"host": "a"}]}}`))
	want := "leaves 2 of 4, lists with two elements 0 of 0, in 1 objects; no object has spec.labels[*].value, spec.rules[*].path"
	if got := c.report(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

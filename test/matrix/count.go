package matrix

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/test/controlplane"
)

// Count is the number of tests by outcome.
type Count struct {
	Passed, Failed, Skipped int      // tests
	Subtests                int      // of them, at any depth
	Reasons                 []string // why tests and subtests were skipped, each with its name

	wanted   map[name]bool // nil counts all
	versions map[name][]string
	outcomes map[name]string
	outputs  map[name]*strings.Builder
	build    strings.Builder
}

// name is that of a test or subtest, or of a package: test is empty then.
type name struct{ pkg, name string }

// test is the test of a subtest.
func (n name) test() name {
	n.name, _, _ = strings.Cut(n.name, "/")
	return n
}

// newCount counts some tests.
func newCount(tests []Test) *Count {
	c := &Count{versions: map[name][]string{}, outcomes: map[name]string{}, outputs: map[name]*strings.Builder{}}
	if tests != nil {
		c.wanted = map[name]bool{}
		for _, t := range tests {
			c.wanted[name{t.Package, t.Name}] = true
		}
	}
	return c
}

// run runs `go test -json` and counts. Failing tests are not an error. The log, if it is not
// nil, gets all output as go test -v has it.
func (c *Count) run(command *exec.Cmd, log io.Writer) error {
	var stderr strings.Builder
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	before := c.Failures()
	if err := command.Start(); err != nil {
		return err
	}
	err = readEvents(stdout, func(e event) error {
		c.add(e)
		if log == nil {
			return nil
		}
		_, err := io.WriteString(log, e.Output)
		return err
	})
	if err != nil {
		_ = command.Cancel()
		_, _ = io.Copy(io.Discard, stdout)
	}
	ended := command.Wait()
	if err != nil {
		return err
	}
	if ended != nil && c.Failures() == before {
		return fmt.Errorf("%w: %s", ended, &stderr)
	}
	return nil
}

// add counts an event.
func (c *Count) add(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		c.build.WriteString(e.Output)
	case "output":
		if c.outputs[n] == nil {
			c.outputs[n] = &strings.Builder{}
		}
		c.outputs[n].WriteString(e.Output)
	case "attr":
		if test := n.test(); e.Key == controlplane.Attribute && !slices.Contains(c.versions[test], e.Value) {
			c.versions[test] = append(c.versions[test], e.Value)
		}
	case "pass", "fail", "skip":
		c.end(n, e.Action)
	}
}

// end counts a test, subtest or package that has ended.
func (c *Count) end(n name, outcome string) {
	c.outcomes[n] = outcome
	if n.name == "" || c.wanted != nil && !c.wanted[n.test()] {
		return
	}
	if outcome == "skip" {
		c.Reasons = append(c.Reasons, n.name+": "+reason(c.output(n)))
	}
	if n != n.test() {
		c.Subtests++
		return
	}
	switch outcome {
	case "pass":
		c.Passed++
	case "fail":
		c.Failed++
	case "skip":
		c.Skipped++
	}
}

func (c *Count) output(n name) string {
	if b := c.outputs[n]; b != nil {
		return b.String()
	}
	return ""
}

// reason is why a test was skipped, from its output: what testing says of itself is left
// out, and where it was said.
func reason(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if where, what, ok := strings.Cut(line, ": "); ok && strings.Contains(where, ".go:") {
			line = what
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " ")
}

// missing returns the names of tests that were wanted and did not end.
func (c *Count) missing() (names []string) {
	for n := range c.wanted {
		if c.outcomes[n] == "" {
			names = append(names, n.pkg+"."+n.name)
		}
	}
	slices.Sort(names)
	return names
}

// Failures is the output of all that failed, also of packages: those that could not be
// built, or crashed. It is empty if nothing failed.
func (c *Count) Failures() string {
	b := &strings.Builder{}
	b.WriteString(c.build.String())
	for _, n := range slices.SortedFunc(maps.Keys(c.outcomes), func(a, b name) int { return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name)) }) {
		if c.outcomes[n] == "fail" {
			fmt.Fprintf(b, "%s %s\n%s", n.pkg, n.name, c.output(n))
		}
	}
	return b.String()
}

// String says how many there were.
func (c *Count) String() string {
	s := fmt.Sprintf("%d end-to-end tests passed, %d failed", c.Passed, c.Failed)
	if c.Skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return fmt.Sprintf("%s (with %d subtests)", s, c.Subtests)
}

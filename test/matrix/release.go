package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Release is a release of Kubernetes, with its binaries.
type Release struct {
	Version string // such as v1.33.13
	assets  string
}

// Open returns the release that a folder is of: its go.mod says which one it is, and its bin
// has the binaries. The error says what it lacks.
func Open(ctx context.Context, dir string) (*Release, error) {
	version, err := goList(ctx, dir, "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	assets, err := filepath.Abs(filepath.Join(dir, "bin"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err != nil {
		return nil, fmt.Errorf("matrix: %w: build it, as `make test-matrix` does", err)
	}
	return &Release{Version: strings.TrimSpace(version), assets: assets}, nil
}

// Test runs tests against the release. Failing tests are in the count, and not an error. The
// error says that some could not be run, or that a control plane was of another release.
// The log gets all that they print.
func (r *Release) Test(ctx context.Context, tests []Test, log io.Writer) (*Count, error) {
	count := newCount(tests)
	modules := map[string][]Test{}
	for _, t := range tests {
		modules[t.Module] = append(modules[t.Module], t)
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		command := goTest(ctx, module, arguments(modules[module])...)
		command.Env = r.environ()
		if err := count.run(command, log); err != nil {
			return count, fmt.Errorf("matrix: %s: %w", r.Version, err)
		}
	}
	return count, r.check(count)
}

// arguments are those of the go command for tests of one module. A package may have a test
// of the same name as another that is wanted; it is run too, and not counted.
func arguments(tests []Test) []string {
	var names, packages []string
	for _, t := range tests {
		names, packages = append(names, regexp.QuoteMeta(t.Name)), append(packages, t.Package)
	}
	slices.Sort(names)
	slices.Sort(packages)
	run := "^(" + strings.Join(slices.Compact(names), "|") + ")$"
	return append([]string{"test", "-json", "-count=1", "-timeout", "30m", "-run", run}, slices.Compact(packages)...)
}

// check returns an error if some tests were not there, or had another control plane.
func (r *Release) check(count *Count) error {
	var errs []error
	if names := count.missing(); len(names) > 0 {
		errs = append(errs, fmt.Errorf("matrix: %s: not run: %s", r.Version, strings.Join(names, ", ")))
	}
	for n := range count.wanted {
		for _, version := range count.versions[n] {
			if version != r.Version {
				errs = append(errs, fmt.Errorf("matrix: %s: %s.%s had %s", r.Version, n.pkg, n.name, version))
			}
		}
	}
	return errors.Join(errs...)
}

// Differential runs the command differential, and returns its last line. The log gets all
// that it prints; that there are disagreements is an error.
func (r *Release) Differential(ctx context.Context, log io.Writer, command string, args ...string) (string, error) {
	var output bytes.Buffer
	c := exec.CommandContext(ctx, command, args...)
	c.Env = r.environ()
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Stdout, c.Stderr = io.MultiWriter(&output, log), log
	err := c.Run()
	lines := strings.Split(strings.TrimSpace(output.String()), "\n")
	if last := lines[len(lines)-1]; err == nil || strings.HasPrefix(last, "differential: ") {
		return last, err
	}
	return "differential: not run", err
}

func (r *Release) environ() []string {
	return append(os.Environ(), "KUBEBUILDER_ASSETS="+r.assets, "CRDKIT_REQUIRE_CONTROLPLANE=1")
}

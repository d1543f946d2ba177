package matrix

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crdkit/crdkit/test/controlplane"
)

const harness = "github.com/crdkit/crdkit/test/controlplane"

// Test is a test function, without its subtests.
type Test struct {
	Module  string // its folder
	Package string // its import path
	Name    string
}

// Needing returns the tests of some modules that need a control plane, sorted. Modules are
// folders. All tests of each package in question are run, and the error says which of
// them failed: what comes after a test that crashed would not be found.
func Needing(ctx context.Context, modules []string) ([]Test, error) {
	var tests []Test
	for _, module := range modules {
		packages, err := packagesIn(ctx, module)
		if err != nil {
			return nil, err
		}
		if len(packages) == 0 {
			continue
		}
		count := newCount(nil)
		nowhere, err := filepath.Abs(filepath.Join(module, "no-control-plane"))
		if err != nil {
			return nil, err
		}
		// Go's cache knows the outcome, if nothing has changed.
		command := goTest(ctx, module, append([]string{"test", "-json", "-timeout", "20m"}, packages...)...)
		command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+nowhere, "CRDKIT_REQUIRE_CONTROLPLANE=")
		err = count.run(command, nil)
		if failed := count.Failures(); err != nil || failed != "" {
			return nil, errors.Join(fmt.Errorf("matrix: the tests of %s fail without a control plane, so it is unknown which of them need one", module), err, text(failed))
		}
		for test, version := range count.versions {
			if slices.Contains(version, controlplane.Missing) {
				tests = append(tests, Test{module, test.pkg, test.name})
			}
		}
	}
	slices.SortFunc(tests, func(a, b Test) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
	})
	return tests, nil
}

// packagesIn returns the packages of a module whose test binaries have the harness in them.
func packagesIn(ctx context.Context, module string) (packages []string, _ error) {
	output, err := goList(ctx, module, "-test", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	return withHarness(output), nil
}

// goList returns what go list prints in a folder.
func goList(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("matrix: go list in %s: %w: %s", dir, err, &stderr)
	}
	return string(output), nil
}

// withHarness reads lines of a package and what is in it, and returns those packages whose
// test binaries have the harness in them.
func withHarness(list string) (packages []string) {
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		// A test binary is pkg.test; what is recompiled for it is "dep [pkg.test]".
		if pkg, ok := strings.CutSuffix(fields[0], ".test"); ok && slices.Contains(fields[1:], harness) {
			packages = append(packages, pkg)
		}
	}
	slices.Sort(packages)
	return packages
}

// goTest is the go command in a module. When the context ends, it is interrupted, so that
// it can end the tests.
func goTest(ctx context.Context, module string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = module
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command
}

// text is an error that is only text, or nil.
func text(s string) error {
	if s == "" {
		return nil
	}
	return errors.New(s)
}

// Package gobuild builds the commands that tests start as processes of their own.
package gobuild

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// one lets the tests of a package build one after another: they often want the same command.
var one sync.Mutex

// Binary builds the command of a package, such as "./cmd/pizza-operator", and returns its path.
// It has the race detector if the test has it. The binary stays in the folder bin of the module,
// so that the linker runs only when something has changed.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	one.Lock()
	defer one.Unlock()
	gomod := strings.TrimSpace(run(t, "env", "GOMOD"))
	folder, args := "test", []string{"build", "-ldflags=-s -w"}
	if Race() {
		folder, args = "test-race", append(args, "-race")
	}
	path := filepath.Join(filepath.Dir(gomod), "bin", folder, filepath.Base(pkg))
	run(t, append(args, "-o", path, pkg)...)
	return path
}

func run(t testing.TB, args ...string) (stdout string) {
	t.Helper()
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(output)
}

// Race reports whether this test, and so each binary that it builds, has the race detector.
func Race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Package gobuild builds the commands that tests start as processes of their own.
package gobuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mu serializes builds: the tests of a package often want the same command.
var mu sync.Mutex

// Binary builds the command of a package, such as "./cmd/pizza-operator", and returns its path.
// It has the race detector if the test has it. The binary stays in the folder bin of the module,
// so that the linker runs only when something has changed.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	gomod := strings.TrimSpace(run(t, "env", "GOMOD"))
	folder, args := "test", []string{"build", "-ldflags=-s -w"}
	if Race() {
		folder, args = "test-race", append(args, "-race")
	}
	// Each package has binaries of its own: another process may be running, or building, the same command.
	module := filepath.Dir(gomod)
	caller, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if caller, err = filepath.Rel(module, caller); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(module, "bin", folder, caller, filepath.Base(pkg))
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

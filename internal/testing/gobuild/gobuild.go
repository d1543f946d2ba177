// Package gobuild builds the commands that tests start as processes of their own.
package gobuild

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Binary builds the command of a package, such as "./cmd/pizza-operator", and returns its path,
// which is gone after t. It has the race detector if the test has it.
func Binary(t testing.TB, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(pkg))
	args := []string{"build", "-o", path, "-ldflags=-s -w"}
	if race() {
		args = append(args, "-race")
	}
	if output, err := exec.CommandContext(t.Context(), "go", append(args, pkg)...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return path
}

func race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

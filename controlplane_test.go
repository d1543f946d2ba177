package crdkit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
)

// TestControlPlane_Missing says once, for all packages, what is left out where there is no
// control plane.
func TestControlPlane_Missing(t *testing.T) {
	err := controlplane.Available()
	if err == nil {
		return
	}
	if !errors.Is(err, controlplane.ErrNoBinaries) {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	walked := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
		}
		if !strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == "." {
			return nil
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("controlplane.Shared(t")) || bytes.Contains(text, []byte("controlplane.ForTest(t")) {
			packages[filepath.Dir(path)] = true
		}
		return err
	})
	expect.NoError(t, walked)
	message := fmt.Sprintf("The end-to-end tests of %d packages are skipped: %v", len(packages), err)
	tellGoTest(message)
	t.Skip(message)
}

// tellGoTest prints a line to the standard error of go test, which shows nothing that a passing
// test prints. It can on Linux, unless that is a regular file: go test would write over the line.
func tellGoTest(line string) {
	path := fmt.Sprintf("/proc/%d/fd/2", os.Getppid())
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return
	}
	stderr, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer stderr.Close()
	fmt.Fprintln(stderr, line)
}

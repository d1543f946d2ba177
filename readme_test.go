package crdkit_test

import (
	"testing"

	"github.com/crdkit/crdkit/internal/page"
)

// TestReadme checks that the Go code in the README is compiled: here, or in the example that
// it is about.
func TestReadme(t *testing.T) {
	page.Read(t, "README.md").GoIsIn(t, ".", "examples/pizza")
}

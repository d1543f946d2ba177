package crdkit_test

import (
	"testing"

	"github.com/crdkit/crdkit/internal/testing/mdtest"
)

// TestReadme checks that the Go code in the README is compiled: here, or in the example that
// it is about.
func TestReadme(t *testing.T) {
	mdtest.Read(t, "README.md").GoIsIn(t, ".", "examples/pizza")
}

package crdkit_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme checks that the code in the README is the code that is compiled and
// run here.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(source), "// readme:begin\n")
	code, _, ended := strings.Cut(code, "\n// readme:end\n")
	if !found || !ended {
		t.Fatal("example_test.go lacks the marks")
	}
	if !strings.Contains(string(readme), "```go\n"+strings.TrimSpace(code)+"\n```\n") {
		t.Error("the code in README.md differs from the code in example_test.go")
	}
}

package mdtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

const text = "Before.\n" +
	"# One\n" +
	"text\n" +
	"```console\n$ a b\nout\n\n# no heading\n$ c\n```\n" +
	"## Two\n" +
	"````yaml\n# f/x.yaml\na: |\n  ```\n````\n" +
	"```` ``` ```` no fence\n"

func TestParse_SectionsAndBlocks(t *testing.T) {
	p, open := parse(text)
	console := Block{Kind: "console", Text: "$ a b\nout\n\n# no heading\n$ c\n", Line: 4}
	yaml := Block{Kind: "yaml", Text: "# f/x.yaml\na: |\n  ```\n", Line: 12}
	want := &Page{Text: text, Sections: []Section{
		{Text: "Before.\n"},
		{Title: "One", Level: 1, Text: "text\n```console\n$ a b\nout\n\n# no heading\n$ c\n```\n", Blocks: []Block{console}},
		{Title: "Two", Level: 2, Text: "````yaml\n# f/x.yaml\na: |\n  ```\n````\n```` ``` ```` no fence\n", Blocks: []Block{yaml}},
	}}
	if diff := cmp.Diff(want, p); diff != "" || open != 0 {
		t.Errorf("open %d (-want +got):\n%s", open, diff)
	}
	if diff := cmp.Diff([]Block{yaml}, p.Blocks("yaml")); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Command{{Line: "a b", Output: "out\n\n# no heading\n"}, {Line: "c"}}, p.Commands()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// A block of a console has commands and their output.
func TestCommands(t *testing.T) {
	got := Block{Text: "ignored\n$ a b\nout\n\nmore\n$ c\n"}.Commands()
	want := []Command{{Line: "a b", Output: "out\n\nmore\n"}, {Line: "c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A block may be a file.
func TestFile(t *testing.T) {
	for text, want := range map[string]string{
		"# a/b.yaml\nx: 1\n":   "a/b.yaml",
		"// main.go\n":         "main.go",
		"# a comment, no file": "",
		"# sentence.\n":        "",
		"x: 1\n# b.yaml\n":     "",
	} {
		if got, ok := (Block{Text: text}).File(); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t", text, got, ok)
		}
	}
}

// A fence that is never closed is found.
func TestParse_OpenFence(t *testing.T) {
	if _, open := parse("a\n\n```go\nx\n````\n"); open != 3 {
		t.Errorf("the open block is said to be in line %d", open)
	}
}

func TestStandIn(t *testing.T) {
	file := strings.Split("package a\n\nfunc f() {\n\tif x {\n\t\ty()\n\n\t\tz()\n\t}\n}", "\n")
	for block, want := range map[string]bool{
		"if x {\n\ty()\n\n\tz()\n}\n":            true,
		"\t\ty()\n\n\t\tz()\n":                   true,
		"func f() {\n\t// …\n\t\tz()\n":          true,
		"z()\n// …\ny()\n":                       false, // not in this order
		"if x {\ny()\n":                          false, // indented otherwise
		"if x {\n\ty()\n\tz()\n":                 false, // a line is missing
		"x {\n":                                  false, // not a whole line
		"func f() {\n\tif x {\n\t\ty()\n \n":     false,
		"package a\n\nfunc f() {\n\tif x {\n":    true,
		"func f() {\n\tif x {\n// …\n\t}\n}\n\n": false, // the file has no more lines
	} {
		if got := standsInAny(block, [][]string{{"other"}, file}); got != want {
			t.Errorf("got %t for\n%s", got, block)
		}
	}
}

// recorder keeps what a test would have failed with.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// A block that stands nowhere fails the test.
func TestGoIsIn_BlockStandsNowhere(t *testing.T) {
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n\nvar x = 1\n"), 0o600))
	for code, want := range map[string]bool{"var x = 1\n": false, "var x = 2\n": true} {
		p, _ := parse("```go\n" + code + "```\n")
		r := &recorder{TB: t}
		p.GoIsIn(r, dir)
		if r.failed != want {
			t.Errorf("%sfailed: %t", code, r.failed)
		}
	}
	p, _ := parse("no code\n")
	r := &recorder{TB: t}
	if p.GoIsIn(r, filepath.Join(dir, "nowhere")); !r.failed {
		t.Error("a directory without Go files does not fail")
	}
}

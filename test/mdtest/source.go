package mdtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// GoIsIn fails the test for each block of Go that is in no Go file of the directories, which are
// not searched further down. Such a block is compiled if the files are.
//
// A block is in a file if its lines follow each other there, however far they are indented
// together. A line "// …" is any number of lines.
func (p *Page) GoIsIn(t testing.TB, directories ...string) {
	t.Helper()
	var files [][]string
	for _, directory := range directories {
		names, err := filepath.Glob(filepath.Join(directory, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			t.Errorf("%s has no *.go", directory)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
		}
	}
	for _, b := range p.Blocks("go") {
		if !standsInAny(b.Text, files) {
			t.Errorf("%s:%d: the block is in no *.go of %s:\n%s",
				p.Path, b.Line, strings.Join(directories, ", "), b.Text)
		}
	}
}

func standsInAny(block string, files [][]string) bool {
	parts := split(block)
	for _, file := range files {
		if standIn(parts, file) {
			return true
		}
	}
	return false
}

// split cuts a block at the lines that are any number of lines.
func split(block string) (parts [][]string) {
	var part []string
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "// …" {
			parts, part = append(parts, part), nil
			continue
		}
		part = append(part, line)
	}
	return append(parts, part)
}

// standIn reports whether the parts stand in a file, one behind the other. A part is found where
// it stands first, so that as many lines as possible are left for the rest.
func standIn(parts [][]string, file []string) bool {
	for _, part := range parts {
		at := -1
		for i := 0; i+len(part) <= len(file); i++ {
			if same(part, file[i:i+len(part)]) {
				at = i
				break
			}
		}
		if at < 0 {
			return false
		}
		file = file[at+len(part):]
	}
	return true
}

// same reports whether all lines are the same, except for one indentation that all lines of the
// file have more than those of the block.
func same(block, file []string) bool {
	indent, known := "", false
	for i, line := range block {
		if line == "" || file[i] == "" {
			if line != file[i] {
				return false
			}
			continue
		}
		if !known {
			var ok bool
			if indent, ok = strings.CutSuffix(file[i], line); !ok || strings.TrimSpace(indent) != "" {
				return false
			}
			known = true
		}
		if file[i] != indent+line {
			return false
		}
	}
	return true
}

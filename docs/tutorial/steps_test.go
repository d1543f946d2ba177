package tutorial_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
)

// steps is the number of steps, and inTree the step whose program is in the folder library.
const steps, inTree = 8, 6

// TestSteps_Program checks that the patches lead to the program in the folder library.
func TestSteps_Program(t *testing.T) {
	got := files(t, filepath.Join(play(t, inTree), fmt.Sprint("step", inTree)))
	for name, text := range got {
		text = strings.ReplaceAll(text, `"example.com/library`, `"github.com/crdkit/crdkit/docs/tutorial/library`)
		got[name] = strings.ReplaceAll(text, "go tool ", "go tool -modfile=../../../hack/tools/go.mod ")
	}
	if diff := cmp.Diff(files(t, "library"), got); diff != "" {
		t.Errorf("(-library +patches):\n%s", diff)
	}
}

// TestSteps_Compile checks that the program and its tests compile after each step.
func TestSteps_Compile(t *testing.T) {
	t.Parallel()
	dir := play(t, steps)
	writeModule(t, dir)
	for name, text := range files(t, dir) {
		step, _, _ := strings.Cut(name, "/")
		text = strings.ReplaceAll(text, `"example.com/library`, `"example.com/library/`+step)
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	output(t, dir, "go", "vet", "./...")
	if unformatted := output(t, dir, "gofmt", "-l", "."); unformatted != "" {
		t.Error("not formatted:", unformatted)
	}
}

// TestPage_Code checks that the Go code of a step is in the program after it, and that its diffs
// are in its patch. A line with an ellipsis stands for any lines.
func TestPage_Code(t *testing.T) {
	t.Parallel()
	dir, page := play(t, steps), mdtest.Read(t, "README.md")
	for _, section := range page.Sections {
		n := stepOf(section)
		if n == 0 {
			continue
		}
		program := filepath.Join(dir, fmt.Sprint("step", n))
		code := &mdtest.Page{Path: page.Path, Sections: []mdtest.Section{section}}
		folders, err := filepath.Glob(filepath.Join(program, "*", "*"))
		expect.NoError(t, err)
		folders = slices.DeleteFunc(append(folders, program), func(folder string) bool {
			sources, _ := filepath.Glob(filepath.Join(folder, "*.go"))
			return len(sources) == 0
		})
		code.GoIsIn(t, folders...)
		patch, err := os.ReadFile(fmt.Sprintf("step%d.patch", n))
		expect.NoError(t, err)
		for _, b := range code.Blocks("diff") {
			for part := range strings.SplitSeq(b.Text, " …\n") {
				if !strings.Contains(string(patch), "\n"+part) {
					t.Errorf("%s:%d: not in the patch of step %d:\n%s", page.Path, b.Line, n, part)
				}
			}
		}
	}
}

// stepOf returns the number of the step that a section describes, or 0.
func stepOf(section mdtest.Section) (n int) {
	_, _ = fmt.Sscanf(section.Title, "Step %d:", &n)
	return n
}

// play applies the patches in order. The program after step 3 is in the subfolder step3 of the result.
func play(t *testing.T, last int) string {
	t.Helper()
	dir := t.TempDir()
	for n := 1; n <= last; n++ {
		program := filepath.Join(dir, fmt.Sprint("step", n))
		expect.NoError(t, os.Mkdir(program, 0o700))
		if n > 1 {
			expect.NoError(t, os.CopyFS(program, os.DirFS(filepath.Join(dir, fmt.Sprint("step", n-1)))))
		}
		apply(t, program, n)
	}
	return dir
}

// apply changes a program as the page says: with the commands rm of a step, and with its patch.
func apply(t *testing.T, program string, n int) {
	t.Helper()
	for _, section := range mdtest.Read(t, "README.md").Sections {
		for _, b := range section.BlocksOf("sh") {
			if stepOf(section) == n {
				output(t, program, "sh", "-ec", b.Text)
			}
		}
	}
	patch, err := filepath.Abs(fmt.Sprintf("step%d.patch", n))
	expect.NoError(t, err)
	output(t, program, "env", "GIT_CEILING_DIRECTORIES="+filepath.Dir(program), "git", "apply", patch)
}

// writeModule writes go.mod and go.sum of a module with the dependencies of crdkit.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	expect.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	expect.NoError(t, err)
	text := strings.Replace(string(mod), "module github.com/crdkit/crdkit\n", "module example.com/library\n", 1)
	text += "\nrequire github.com/crdkit/crdkit v0.0.0\n\nreplace github.com/crdkit/crdkit => " + root + "\n"
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
}

// files returns the files of a folder by their paths.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, root := map[string]string{}, os.DirFS(dir)
	expect.NoError(t, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, "go.") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		all[path] = string(text)
		return err
	}))
	return all
}

// output runs a command in a folder, and returns what it prints.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

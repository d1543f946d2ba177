package tutorial_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the code of the steps into the text")

// steps is how many there are.
const steps = 8

// TestText_ShowsSteps checks that who follows the text has the folders in the end: the
// page of a step shows each new file, and how each other file changes, except generated
// ones.
func TestText_ShowsSteps(t *testing.T) {
	before := map[string]string{}
	for n := range steps {
		folder := fmt.Sprintf("step%d", n+1)
		after := read(t, folder)
		t.Run(folder, func(t *testing.T) { checkPage(t, filepath.Join(folder, "README.md"), before, after) })
		before = after
	}
}

func checkPage(t *testing.T, page string, before, after map[string]string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown, got, err := show(string(text), before, after)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(got, string(text)); diff != "" {
		t.Errorf("the text differs from the code: -update writes it (-code +text):\n%s", diff)
	}
	want := map[string]string{}
	for path := range after {
		if _, ok := before[path]; !ok {
			want[path] = "New"
		} else if before[path] != after[path] {
			want[path] = "Changed"
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			want[path] = "Deleted"
		}
	}
	for path := range want {
		if _, ok := shown[path]; generated(path) && !ok {
			delete(want, path)
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the headings of the files (-want +got):\n%s", diff)
	}
}

// TestGoldenFiles_Stay checks that no step forgets what an earlier one has stored.
func TestGoldenFiles_Stay(t *testing.T) {
	before, kept := map[string]string{}, 0
	for n := range steps {
		after := read(t, fmt.Sprintf("step%d", n+1))
		for path, text := range before {
			if !strings.HasPrefix(path, "testdata/golden/") {
				continue
			}
			kept++
			if after[path] != text {
				t.Errorf("step %d changes %s", n+1, path)
			}
		}
		before = after
	}
	if kept == 0 {
		t.Error("there are no golden files")
	}
}

// TestHistory_HasEarlierSteps checks that a step which converts has the definitions of those before it.
func TestHistory_HasEarlierSteps(t *testing.T) {
	const definition = "library.example.com_books.yaml"
	for n := 3; n < steps; n++ { // the first two, and the last, have one version
		for before := 2; before < n; before++ {
			step := fmt.Sprintf("step%d", before)
			want := read(t, step)["config/crd/"+definition]
			got := read(t, fmt.Sprintf("step%d", n))["testdata/history/"+step+"/"+definition]
			if diff := cmp.Diff(want, got); diff != "" || want == "" {
				t.Errorf("step %d has another history of step %d (-want +got):\n%s", n, before, diff)
			}
		}
	}
}

// TestLinks checks the links from page to page.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("step*/README.md")
	if err != nil || len(pages) != steps {
		t.Fatalf("there are the pages %q: %v", pages, err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// read returns the files of a step by their paths, as they are in the reader's own module.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	own := strings.NewReplacer(
		"github.com/crdkit/crdkit/docs/tutorial/"+folder, "example.com/library",
		"go tool -modfile=../../../hack/tools/go.mod ", "go tool ",
	)
	root := os.DirFS(folder)
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == "README.md" {
			return err
		}
		text, err := fs.ReadFile(root, path)
		files[path] = own.Replace(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// generated reports whether a tool has written a file, so that the text need not show it.
func generated(path string) bool {
	return strings.HasPrefix(path, "config/crd/") || strings.HasPrefix(path, "testdata/") || strings.HasPrefix(filepath.Base(path), "zz_generated")
}

var heading = regexp.MustCompile("^### (New|Changed|Deleted): `(.+)`$")

// show returns the text with the code of the steps in it, and which files are in its
// headings. The code is in the first block behind a heading.
func show(text string, before, after map[string]string) (shown map[string]string, _ string, _ error) {
	shown = map[string]string{}
	var out strings.Builder
	var code string            // for the next block, if there is one
	var skipping, inBlock bool // inside of a block that is replaced, or of another one
	for line := range strings.Lines(text) {
		if match := heading.FindStringSubmatch(strings.TrimSuffix(line, "\n")); match != nil && !inBlock && !skipping {
			if code != "" {
				break
			}
			verb, path := match[1], match[2]
			shown[path] = verb
			switch verb {
			case "New":
				code = "```" + strings.TrimPrefix(filepath.Ext(path), ".") + "\n" + after[path] + "```\n"
			case "Changed":
				code = "```diff\n" + unified(path, before[path], after[path]) + "```\n"
			}
		}
		fence := strings.HasPrefix(line, "```")
		switch {
		case fence && skipping:
			skipping = false
		case skipping:
		case fence && code != "" && !inBlock:
			out.WriteString(code)
			code, skipping = "", true
		default:
			inBlock = inBlock != fence
			out.WriteString(line)
		}
	}
	if code != "" {
		return nil, "", fmt.Errorf("no code block for:\n%s", code)
	}
	return shown, out.String(), nil
}

// unified returns the difference between two texts as patch takes it.
func unified(path, before, after string) string {
	const context = 2
	a, b := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	// common[i][j] is how many lines a[i:] and b[j:] have in common, in their order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	type line struct {
		sign byte
		text string
		i, j int // how many lines of each text are before it
	}
	var all []line
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			all = append(all, line{' ', a[i], i, j})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			all = append(all, line{'-', a[i], i, j})
			i++
		default:
			all = append(all, line{'+', b[j], i, j})
			j++
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- a/%s\n+++ b/%s\n", path, path)
	changed := func(l line) bool { return l.sign != ' ' }
	for at := 0; ; {
		first := slices.IndexFunc(all[at:], changed)
		if first < 0 {
			return out.String()
		}
		first += at
		end := first
		for next := first; next >= 0 && next <= end+2*context; {
			end = next + 1
			if next = slices.IndexFunc(all[end:], changed); next >= 0 {
				next += end
			}
		}
		hunk := all[max(at, first-context):min(len(all), end+context)]
		olds, news := 0, 0
		for _, l := range hunk {
			if l.sign != '+' {
				olds++
			}
			if l.sign != '-' {
				news++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", hunk[0].i+1, olds, hunk[0].j+1, news)
		for _, l := range hunk {
			out.WriteByte(l.sign)
			out.WriteString(l.text)
		}
		at = min(len(all), end+context)
	}
}

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
)

// pages returns the documentation of the repository.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "tutorial/*.md", "tutorial/*/*.md", "../*.md", "../examples/*/*.md", "../roundtrip/*.md"} {
		names, err := filepath.Glob(pattern)
		expect.NoError(t, err)
		all = append(all, names...)
	}
	return all
}

// Folders whose go.mod selects the version of a module that a page cites. That of hack/controlplane is
// downloaded only if a control plane was built.
var cited = map[string]struct{ module, folder string }{
	"apiserver":               {"k8s.io/apiserver", ".."},
	"apiextensions-apiserver": {"k8s.io/apiextensions-apiserver", ".."},
	"apimachinery":            {"k8s.io/apimachinery", ".."},
	"client-go":               {"k8s.io/client-go", ".."},
	"structured-merge-diff":   {"sigs.k8s.io/structured-merge-diff/v6", ".."},
	"kubernetes":              {"k8s.io/kubernetes", "../hack/controlplane"},
	"controller-runtime":      {"sigs.k8s.io/controller-runtime", "../interop/controllerruntime"},
}

var citation = regexp.MustCompile("`([a-z-]+)/([\\w./-]+\\.go)#(\\w+)`")

// TestCitations checks that each file that a page cites has the name that it cites.
func TestCitations(t *testing.T) {
	folders := map[string]string{}
	for _, name := range pages(t) {
		for _, match := range citation.FindAllStringSubmatch(mdtest.Read(t, name).Text, -1) {
			dir, found := folders[match[1]]
			if !found {
				list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", cited[match[1]].module)
				list.Dir = cited[match[1]].folder
				out, err := list.Output()
				if err != nil {
					t.Fatalf("%s: %s: %v", name, match[0], err)
				}
				dir = strings.TrimSpace(string(out))
				folders[match[1]] = dir
			}
			if dir == "" {
				t.Logf("%s was not downloaded: %s is not checked", match[1], match[0])
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, match[2]))
			if err != nil || !strings.Contains(string(text), match[3]) {
				t.Errorf("%s: %s: not found in %s: %v", name, match[0], dir, err)
			}
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	codeSpan = regexp.MustCompile("`[^`\n]*`")
)

// TestLinks checks that each link to a file or a heading leads there.
func TestLinks(t *testing.T) {
	for _, name := range pages(t) {
		p := mdtest.Read(t, name)
		text := p.Text
		for _, s := range p.Sections {
			for _, b := range s.Blocks {
				text = strings.ReplaceAll(text, b.Text, "")
			}
		}
		for _, match := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
			target := p
			if match[1] != "" {
				path := filepath.Join(filepath.Dir(name), match[1])
				if _, err := os.Stat(path); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if match[2] == "" {
					continue
				}
				target = mdtest.Read(t, path)
			}
			if !hasAnchor(target, strings.TrimPrefix(match[2], "#")) {
				t.Errorf("%s: there is no heading %s%s", name, match[1], match[2])
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// hasAnchor reports whether a page has a heading that GitHub calls so.
func hasAnchor(p *mdtest.Page, anchor string) bool {
	for _, s := range p.Sections {
		if strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(s.Title), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

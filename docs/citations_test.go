package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crdkit/crdkit/internal/testing/mdtest"
)

// pages are the pages that this folder proves.
var pages = []string{"README.md", "tour.md", "benchmarks.md", "coming-from-controller-runtime.md", "compatibility.md", "controller.md", "corpus.md", "leaving.md", "running-in-production.md", "testing.md", "troubleshooting.md", "what-the-api-server-does.md"}

// Where the modules that a page may cite are found: by go.mod of a folder. Those of
// hack/controlplane are there only if a control plane was built.
var cited = map[string]struct{ module, of string }{
	"apiserver":               {"k8s.io/apiserver", ".."},
	"apiextensions-apiserver": {"k8s.io/apiextensions-apiserver", ".."},
	"apimachinery":            {"k8s.io/apimachinery", ".."},
	"client-go":               {"k8s.io/client-go", ".."},
	"structured-merge-diff":   {"sigs.k8s.io/structured-merge-diff/v6", ".."},
	"kubernetes":              {"k8s.io/kubernetes", "../hack/controlplane"},
	"controller-runtime":      {"sigs.k8s.io/controller-runtime", "../interop/controllerruntime"},
}

var citation = regexp.MustCompile("`([a-z-]+)/([\\w./-]+\\.go)#(\\w+)`")

// TestCitations checks that each file that a page cites has the function that it names, in
// the version of go.mod.
func TestCitations(t *testing.T) {
	directories := map[string]string{}
	for _, name := range pages {
		for _, match := range citation.FindAllStringSubmatch(mdtest.Read(t, name).Text, -1) {
			module, known := cited[match[1]]
			if !known {
				t.Errorf("%s: nobody knows where to find %s", name, match[0])
				continue
			}
			dir, found := directories[match[1]]
			if !found {
				list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module.module)
				list.Dir = module.of
				out, err := list.Output()
				if err != nil {
					t.Fatalf("%s: %v", module.module, err)
				}
				dir = strings.TrimSpace(string(out))
				directories[match[1]] = dir
			}
			if dir == "" { // it was never downloaded
				t.Logf("%s is not here: %s is not checked", module.module, match[0])
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, match[2]))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?` + match[3] + `\b|type ` + match[3] + `\b|(var)?\s*` + match[3] + `\s+= )`)
			if !declared.Match(text) {
				t.Errorf("%s: %s/%s declares no %s", name, match[1], match[2], match[3])
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
	for _, name := range append([]string{"../CONTRIBUTING.md", "../CHANGELOG.md", "../README.md", "../examples/pizza/README.md"}, pages...) {
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

// TestCitations_OfPackages checks that the documentation of a package has the section that a page
// names, such as: package [admission](../admission), "What is preserved".
func TestCitations_OfPackages(t *testing.T) {
	cited := regexp.MustCompile(`\[[a-z/]+\]\((\.\./[a-z/]+)\),\s+"([^"]+)"`)
	found := 0
	for _, name := range pages {
		text, err := os.ReadFile(name)
		check(t, err)
		for _, match := range cited.FindAllStringSubmatch(string(text), -1) {
			found++
			doc, err := os.ReadFile(filepath.Join(match[1], "doc.go"))
			check(t, err)
			if section := strings.Join(strings.Fields(match[2]), " "); !strings.Contains(string(doc), "\n// # "+section+"\n") {
				t.Errorf("%s: package %s has no section %q", name, match[1], section)
			}
		}
	}
	if found == 0 {
		t.Error("no page names a section")
	}
}

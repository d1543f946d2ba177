package tutorial_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/controlplane"
	"github.com/crdkit/crdkit/test/expect"
	"github.com/crdkit/crdkit/test/mdtest"
	"github.com/crdkit/crdkit/test/tier"
)

var update = flag.Bool("update", false, "write what the commands print into the page")

// TestPage_Commands follows the page against a real kube-apiserver. After each step, it generates
// code, runs the tests of the program, rolls it out, and runs the commands of the page.
func TestPage_Commands(t *testing.T) {
	tier.VerifyOnly(t, "follows the tutorial")
	t.Parallel()
	cp := controlplane.ForTest(t)
	cp.SkipIfOlder(t, "the page shows its words")
	kubeconfig, err := cp.Kubeconfig(cp.Config())
	expect.NoError(t, err)
	port, err := controlplane.FreePort()
	expect.NoError(t, err)
	dir := t.TempDir()
	writeModule(t, dir)
	sh := startShell(t, dir, "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+t.TempDir(), fmt.Sprint("LIBRARY_URL=https://127.0.0.1:", port),
		"PATH="+filepath.Dir(cp.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	var rollout []mdtest.Command // of step 2, which the other steps repeat
	page := mdtest.Read(t, "README.md")
	for _, section := range page.Sections {
		n, blocks := stepOf(section), section.BlocksOf("console")
		if n == 0 {
			if len(blocks) > 0 {
				t.Errorf("section %q: only the commands of steps are run", section.Title)
			}
			continue
		}
		apply(t, dir, n)
		verify(t, dir)
		if n == 2 {
			rollout = blocks[1].Commands()
		} else if n > 2 {
			sh.run("kill %1; wait")
			sh.show(page, rollout)
		}
		for _, b := range blocks {
			sh.show(page, b.Commands())
		}
	}
	sh.run("kill %1; wait")
	if *update {
		expect.NoError(t, os.WriteFile(page.Path, []byte(page.Text), 0o600))
	}
}

// verify generates the files of a program again, which must not change them, and runs its tests.
func verify(t *testing.T, dir string) {
	t.Helper()
	tools, err := filepath.Abs("../../hack/tools/go.mod")
	expect.NoError(t, err)
	doc, err := os.ReadFile(filepath.Join(dir, "doc.go"))
	expect.NoError(t, err)
	doc = []byte(strings.Replace(string(doc), "go tool controller-gen", "go tool -modfile="+tools+" controller-gen", 1))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "doc.go"), doc, 0o600))
	before := files(t, dir)
	output(t, dir, "go", "generate", "./...")
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("generated files differ (-patch +generated):\n%s", diff)
	}
	output(t, dir, "go", "test", "./...")
}

// shell is a bash that runs one command of the page after the other.
type shell struct {
	*testing.T
	in  io.Writer
	out *bufio.Reader
}

func startShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	cmd := exec.Command("bash")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	expect.NoError(t, err)
	out, err := cmd.StdoutPipe()
	expect.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	expect.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "\nkill %1; exit\n")
		_ = cmd.Wait()
	})
	return &shell{T: t, in: in, out: bufio.NewReader(out)}
}

// run runs a command, and returns its output with a newline at the end.
func (s *shell) run(line string) string {
	s.Helper()
	_, err := fmt.Fprintf(s.in, "%s\nprintf '\\0'\n", line)
	expect.NoError(s, err)
	text, err := s.out.ReadString(0)
	expect.NoError(s, err)
	text = dryRun.ReplaceAllString(strings.TrimSuffix(text, "\x00"), "")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

var (
	dryRun = regexp.MustCompile(` \(server dry run\)`)
	writes = regexp.MustCompile(`kubectl (apply|create|patch) `)
)

// show runs commands of the page, or puts what they print into its text.
func (s *shell) show(page *mdtest.Page, commands []mdtest.Command) {
	s.Helper()
	for _, c := range commands {
		if !*update {
			s.play(c)
			continue
		}
		time.Sleep(5 * time.Second) // until the API server knows the last change
		shown := "$ " + c.Line + "\n"
		page.Text = strings.Replace(page.Text, shown+c.Output, shown+s.run(c.Line), 1)
	}
}

// play runs a command until it prints what the page shows, because a change takes a moment to
// reach the API server. It tries a write as a dry run first.
func (s *shell) play(c mdtest.Command) {
	s.Helper()
	line := c.Line
	if writes.MatchString(line) {
		line += " --dry-run=server"
	}
	got := ""
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if got = s.run(line); got == c.Output || !strings.Contains(line, "kubectl") || time.Now().After(end) {
			break
		}
	}
	if line != c.Line && got == c.Output {
		got = s.run(c.Line)
	}
	if diff := cmp.Diff(c.Output, got); diff != "" {
		s.Fatalf("$ %s (-page +real):\n%s", c.Line, diff)
	}
}

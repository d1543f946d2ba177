package crdcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// run runs the command and returns all that can be seen of it.
func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = Run(t.Context(), args, strings.NewReader(stdin), &out, &errOut)
	return code, out.String(), errOut.String()
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhatTheCommandPrints(t *testing.T) {
	t.Chdir("testdata")
	for _, test := range []struct {
		name, stdin string
		args        []string
		code        int
	}{
		{name: "lint", args: []string{"lint", "bad.yaml"}, code: exitFindings},
		{name: "lint-json", args: []string{"lint", "-o", "json", "bad.yaml"}, code: exitFindings},
		{name: "lint-good", args: []string{"lint", "project"}, code: exitOK},
		{name: "lint-good-json", args: []string{"lint", "-o", "json", "project"}, code: exitOK},
		{name: "lint-stdin", args: []string{"lint", "-"}, stdin: content(t, "bad.yaml"), code: exitFindings},
		{name: "lint-unreadable", args: []string{"lint", "nowhere", "-", "bad.yaml"}, stdin: "kind: CustomResourceDefinition\na: b: c\n", code: exitError},
		{name: "lint-none", args: []string{"lint", "objects.yaml"}, code: exitError},

		{name: "validate", args: []string{"validate", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-json", args: []string{"validate", "-o", "json", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-ignore", args: []string{"validate", "--validate=ignore", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-directory", args: []string{"validate", "--crd", "project/pizza.yaml", "project"}, code: exitError},
		{name: "validate-good", args: []string{"validate", "--crd", "project", "-n", "rome", "-"}, stdin: `{"apiVersion":"restaurant.example.com/v1","kind":"Oven","metadata":{"name":"o"}}`, code: exitOK},
		{name: "validate-unknown", args: []string{"validate", "--crd", "project", "-"}, stdin: "apiVersion: v1\nkind: Service\n---\napiVersion: restaurant.example.com/v2\nkind: Oven\n", code: exitError},
		{name: "validate-bad-crd", args: []string{"validate", "--crd", "bad.yaml", "objects.yaml"}, code: exitError},

		{name: "prune", args: []string{"prune", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "prune-json", args: []string{"prune", "-o", "json", "--crd", "project", "-"}, stdin: `{"apiVersion":"restaurant.example.com/v1","kind":"Oven","metadata":{"name":"o"},"spec":{}}`, code: exitFindings},
		{name: "default", args: []string{"default", "--crd", "project", "objects.yaml"}, code: exitOK},

		{name: "diff", args: []string{"diff", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-json", args: []string{"diff", "-o", "json", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-same", args: []string{"diff", "project", "-"}, stdin: content(t, "project/pizza.yaml") + "---\n" + content(t, "project/deep/others.yml"), code: exitOK},
		{name: "diff-removed", args: []string{"diff", "project", "project/pizza.yaml"}, code: exitFindings},
		{name: "diff-renamed", args: []string{"diff", "project/deep/others.yml", "-"}, stdin: strings.NewReplacer("ovens", "stoves", "Oven", "Stove").Replace(content(t, "project/deep/others.yml")), code: exitFindings},

		{name: "help", args: nil, code: exitOK},
		{name: "usage-command", args: []string{"check"}, code: exitError},
		{name: "usage-flag", args: []string{"lint", "--fix", "x"}, code: exitError},
		{name: "usage-output", args: []string{"lint", "-o", "yaml", "x"}, code: exitError},
		{name: "usage-no-file", args: []string{"lint"}, code: exitError},
		{name: "usage-no-crd", args: []string{"validate", "objects.yaml"}, code: exitError},
		{name: "usage-validate", args: []string{"validate", "--validate=often", "--crd", "project", "objects.yaml"}, code: exitError},
		{name: "usage-stdin-twice", args: []string{"diff", "-", "-"}, code: exitError},
		{name: "usage-stdin-both", args: []string{"prune", "--crd", "-", "-"}, code: exitError},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := run(t, test.stdin, test.args...)
			if code != test.code {
				t.Errorf("the exit code is %d, want %d", code, test.code)
			}
			if strings.HasSuffix(test.name, "-json") && !json.Valid([]byte(stdout)) {
				t.Errorf("it is no JSON: %s", stdout)
			}
			got := fmt.Sprintf("$ crdcheck %s\n%s--- standard error\n%s--- exit code %d\n", strings.Join(test.args, " "), stdout, stderr, code)
			golden := filepath.Join("golden", test.name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(content(t, golden), got); diff != "" {
				t.Errorf("(-want +got), -update writes it anew:\n%s", diff)
			}
		})
	}
}

func TestEachSubcommandHasHelp(t *testing.T) {
	for _, name := range []string{"lint", "validate", "prune", "default", "diff"} {
		if code, stdout, stderr := run(t, "", name, "--help"); code != exitOK || !strings.Contains(stdout, "crdcheck "+name) || stderr != "" {
			t.Errorf("%s: %d %s%s", name, code, stdout, stderr)
		}
	}
}

func TestAnInterruptEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	if code := Run(ctx, []string{"lint", "testdata"}, strings.NewReader(""), &out, &errOut); code != exitError || errOut.String() != "error: interrupted\n" {
		t.Errorf("%d %s", code, errOut.String())
	}
}

// On a terminal, a line says how far a command is that takes long; it makes way for others.
func TestALongRunShowsHowFarItIs(t *testing.T) {
	var out, terminal bytes.Buffer
	c := &command{out: &out, errOut: &terminal, progress: &progress{out: &terminal, begin: time.Now().Add(-patience)}}
	c.each(t.Context(), "lint", 2, func(i int) string { return fmt.Sprint(i) }, func(i int) error {
		if i == 0 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	const clear = "\r\x1b[K"
	want := clear + "lint 1/2 0" + clear + "error: unexpected EOF\n" + clear + "lint 2/2 1" + clear
	if diff := cmp.Diff(want, terminal.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	terminal.Reset()
	c.progress.begin = time.Now()
	c.progress.show("soon")
	c.progress.clear()
	if terminal.Len() > 0 {
		t.Errorf("a short run shows %q", terminal.String())
	}
	if newProgress(&out).out != nil {
		t.Error("it shows progress where there is no terminal")
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdkit/crdkit/test/expect"
)

var update = flag.Bool("update", false, "write the golden files")

// run runs the command and returns all that can be seen of it.
func run(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(stdin), &out, &errOut)
	return code, out.String(), errOut.String()
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	expect.NoError(t, err)
	return string(data)
}

// oven is an object on one line.
func oven(name string) string {
	return fmt.Sprintf(`{"apiVersion":"restaurant.example.com/v1","kind":"Oven","metadata":{"name":%q}}`, name)
}

const (
	definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ovens.restaurant.example.com"},
"spec":{"group":"restaurant.example.com","scope":"Cluster","names":{"plural":"ovens","kind":"Oven"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

	duplicates = `# Each object has a label twice.
apiVersion: restaurant.example.com/v1
kind: Oven
metadata:
  name: block
  labels:
    hot: "no"
    hot: "yes"
---
{apiVersion: restaurant.example.com/v1, kind: Oven,
 metadata: {name: flow, labels: {hot: "no", hot: "yes"}}}
---
{"apiVersion": "restaurant.example.com/v1", "kind": "Oven", "metadata": {"name": "json", "labels": {"hot": "no", "hot": "yes"}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: restaurant.example.com/v1
  kind: Oven
  metadata: {name: once}
- apiVersion: restaurant.example.com/v1
  kind: Oven
  metadata:
    name: item
    labels: {hot: "no",
      hot: "yes"}
`

	cooks = `apiVersion: kitchen.example.com/v1
kind: Cook
metadata: {name: served}
---
apiVersion: kitchen.example.com/v1beta1
kind: Cook
metadata: {name: not-served}
---
apiVersion: kitchen.example.com/v0
kind: Cook
metadata: {name: not-there}
`

	unknownField = `apiVersion: restaurant.example.com/v1
kind: Pizza
metadata: {generateName: pizza-}
spec: {size: medium, colour: red, toppings: []}
`
)

// warned is a definition that the server takes with a warning.
func warned(t *testing.T) string {
	t.Helper()
	text := content(t, "project/deep/others.yml")
	return strings.Replace(text, "{type: object}", "{type: object, properties: {at: {type: string, format: date_time}}}", 1)
}

// crdList returns definitions as the items of a List, beside another object.
func crdList(text string) string {
	list := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n"
	for _, document := range strings.Split(text, "\n---\n") {
		list += "- # a definition\n  " + strings.ReplaceAll(document, "\n", "\n  ") + "\n"
	}
	return list
}

func TestRun_Output(t *testing.T) {
	t.Chdir("testdata")
	for _, test := range []struct {
		name, stdin string
		args        []string
		code        int
	}{
		{name: "lint", args: []string{"lint", "bad.yaml"}, code: exitFindings},
		{name: "lint-json", args: []string{"lint", "-o", "json", "bad.yaml"}, code: exitFindings},
		{name: "lint-github", args: []string{"lint", "-o", "github", "bad.yaml"}, code: exitFindings},
		{name: "lint-sarif-json", args: []string{"lint", "-o", "sarif", "bad.yaml"}, code: exitFindings},
		{name: "lint-good", args: []string{"lint", "project"}, code: exitOK},
		{name: "lint-good-json", args: []string{"lint", "-o", "json", "project"}, code: exitOK},
		{name: "lint-stdin", args: []string{"lint", "-"}, stdin: content(t, "bad.yaml"), code: exitFindings},
		{name: "lint-warnings", args: []string{"lint", "-"}, stdin: warned(t), code: exitOK},
		{name: "lint-warnings-json", args: []string{"lint", "-o", "json", "-"}, stdin: warned(t), code: exitOK},
		{name: "lint-warnings-and-faults", args: []string{"lint", "-", "bad.yaml"}, stdin: warned(t), code: exitFindings},
		{name: "lint-unreadable", args: []string{"lint", "nowhere", "-", "bad.yaml"}, stdin: "kind: CustomResourceDefinition\na: b: c\n", code: exitError},
		{name: "lint-list", args: []string{"lint", "-"}, stdin: crdList(content(t, "bad.yaml")), code: exitFindings},
		{name: "lint-json-list", args: []string{"lint", "-"}, stdin: `{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","items":[` + "\n" + definition + ",\n" + strings.Replace(definition, `"scope":"Cluster"`, `"scope":"Galaxy"`, 1) + "]}", code: exitFindings},
		{name: "lint-none", args: []string{"lint", "objects.yaml"}, code: exitError},

		{name: "lint-v1beta1", args: []string{"lint", "old.yaml"}, code: exitFindings},
		{name: "convert", args: []string{"convert", "old.yaml", "project/deep/others.yml"}, code: exitOK},
		{name: "convert-json", args: []string{"convert", "-o", "json", "old.yaml"}, code: exitOK},
		{name: "convert-faults", args: []string{"convert", "-"}, stdin: strings.Replace(content(t, "old.yaml"), "  preserveUnknownFields: false\n", "", 1), code: exitFindings},
		{name: "convert-list-keys", args: []string{"convert", "-"}, stdin: strings.Replace(content(t, "old.yaml"), "speed: {type: integer, maximum: 500}",
			"ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [protocol], items: {type: object, properties: {protocol: {type: string}}}}", 1), code: exitFindings},
		{name: "convert-none", args: []string{"convert", "objects.yaml"}, code: exitError},

		{name: "validate", args: []string{"validate", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-json", args: []string{"validate", "-o", "json", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-github", args: []string{"validate", "-o", "github", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-sarif-json", args: []string{"validate", "-o", "sarif", "--crd", "project", "-"}, stdin: unknownField, code: exitFindings},
		{name: "validate-ignore", args: []string{"validate", "--validate=ignore", "--crd", "project", "objects.yaml"}, code: exitFindings},
		{name: "validate-directory", args: []string{"validate", "--crd", "project/pizza.yaml", "project"}, code: exitError},
		{name: "validate-good", args: []string{"validate", "--crd", "project", "-n", "rome", "-"}, stdin: `{"apiVersion":"restaurant.example.com/v1","kind":"Oven","metadata":{"name":"o"}}`, code: exitOK},
		{name: "validate-unknown", args: []string{"validate", "--crd", "project", "-"}, stdin: "apiVersion: v1\nkind: Service\n---\napiVersion: restaurant.example.com/v2\nkind: Oven\n", code: exitFindings},
		{name: "validate-bad-crd", args: []string{"validate", "--crd", "bad.yaml", "objects.yaml"}, code: exitError},

		// Text that cannot be read to its end.
		{name: "broken", args: []string{"validate", "--crd", "project", "-"}, stdin: oven("a") + "\n\n" + `{"apiVersion":"restaurant.example.com/v1",` + "\n" + `"kind":"Oven","metadata":{"name":"b",}}` + "\n" + oven("c"), code: exitError},
		{name: "broken-lint", args: []string{"lint", "-"}, stdin: definition + "\n{\n", code: exitError},
		{name: "broken-crd", args: []string{"validate", "--crd", "-", "objects.yaml"}, stdin: definition + "\n{\n", code: exitError},
		{name: "garbage", args: []string{"validate", "--crd", "project", "-"}, stdin: oven("a") + "\ngarbage\n", code: exitError},
		{name: "garbage-yaml", args: []string{"validate", "--crd", "project", "-"}, stdin: oven("a") + "\n---\n{apiVersion: restaurant.example.com/v1, kind: Oven, metadata: {name: b}}\ngarbage\n", code: exitError},
		{name: "lines", args: []string{"validate", "--crd", "project", "-"}, stdin: "# comment\n---\n" + oven("") + "\n" + `{"apiVersion":"v1","kind":"List",` + "\n" + `"items":[` + "\n" + oven("b") + ",\n" + oven("") + ",\n3]}\n---\n\na: b\n\tc: d\n...\na: b: c\n", code: exitError},

		// Keys that are there twice.
		{name: "duplicate", args: []string{"validate", "--crd", "project", "-"}, stdin: duplicates, code: exitFindings},
		{name: "duplicate-warn", args: []string{"validate", "--validate=warn", "--crd", "project", "-"}, stdin: duplicates, code: exitOK},
		{name: "duplicate-ignore", args: []string{"validate", "--validate=ignore", "--crd", "project", "-"}, stdin: duplicates, code: exitOK},
		{name: "duplicate-crd", args: []string{"validate", "--crd", "-", "objects.yaml"}, stdin: "---\n" + strings.Replace(content(t, "versions.yaml"), "  scope: Namespaced\n", "  scope: Namespaced\n  scope: Cluster\n", 1), code: exitError},

		// The input to check.
		{name: "tree", args: []string{"validate", "--crd", "project", "--crd", "tree", "tree"}, code: exitFindings},
		{name: "tree-lint", args: []string{"lint", "tree"}, code: exitError},
		{name: "template", args: []string{"validate", "--crd", "project", "template"}, code: exitError},
		{name: "nothing", args: []string{"validate", "--crd", "project", "-"}, code: exitError},
		{name: "list-named", args: []string{"validate", "--crd", "project", "tree/config/crd/patches/rename.yaml", "tree/chart/values.yaml"}, code: exitError},
		{name: "faulty-crd", args: []string{"validate", "--crd", "bad.yaml", "-"}, stdin: oven("a") + "\n---\n" + content(t, "objects.yaml"), code: exitError},
		{name: "crd-twice", args: []string{"validate", "--crd", "project", "--crd", "new.yaml", "-"}, stdin: oven("a") + "\n---\n" + content(t, "objects.yaml"), code: exitError},
		{name: "crd-twice-same", args: []string{"validate", "--crd", "project", "--crd", "project/pizza.yaml", "-"}, stdin: oven("a"), code: exitOK},
		{name: "unusable-crd-json", args: []string{"validate", "-o", "json", "--crd", "nowhere", "objects.yaml"}, code: exitError},
		{name: "version", args: []string{"validate", "--crd", "versions.yaml", "-"}, stdin: cooks, code: exitFindings},
		{name: "typed-list", args: []string{"validate", "--crd", "project", "-"}, stdin: `{"apiVersion":"restaurant.example.com/v1","kind":"OvenList","metadata":{},"items":[{"metadata":{"name":"a"}},{}]}`, code: exitFindings},
		{name: "list-in-list", args: []string{"validate", "--crd", "project", "-"}, stdin: "kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: restaurant.example.com/v1\n    kind: Oven\n    metadata: {name: a}\n  - apiVersion: restaurant.example.com/v1\n    kind: OvenList\n    items:\n    - metadata: {name: B}\n- " + `{"apiVersion":"v1","kind":"List","items":[` + oven("c") + "]}\n", code: exitFindings},
		{name: "json-list-in-list", args: []string{"validate", "--crd", "project", "-"}, stdin: `{"kind":"List","apiVersion":"v1","items":[` + "\n" + `{"kind":"OvenList","apiVersion":"restaurant.example.com/v1","items":[` + "\n" + oven("a") + ",\n" + oven("B") + "]}]}", code: exitFindings},
		{name: "dump", args: []string{"validate", "--crd", "project", "dump.yaml"}, code: exitFindings},
		{name: "generated", args: []string{"validate", "--crd", "project", "-"}, stdin: `{"apiVersion":"restaurant.example.com/v1","kind":"Oven","metadata":{"generateName":"oven-"}}`, code: exitOK},
		{name: "generated-status", args: []string{"validate", "--crd", "project", "-"}, stdin: "apiVersion: restaurant.example.com/v1\nkind: Pizza\nmetadata: {generateName: pizza-}\nspec: {toppings: []}\nstatus: {slices: many}\n", code: exitFindings},
		{name: "unknown-field", args: []string{"validate", "--crd", "project", "-"}, stdin: unknownField, code: exitFindings},
		{name: "unknown-field-warn", args: []string{"validate", "--validate=warn", "--crd", "project", "-"}, stdin: unknownField, code: exitFindings},

		{name: "diff", args: []string{"diff", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-json", args: []string{"diff", "-o", "json", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-github", args: []string{"diff", "-o", "github", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-sarif-json", args: []string{"diff", "-o", "sarif", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-accepted", args: []string{"diff", "--accept", "accepted.yaml", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-accepted-json", args: []string{"diff", "-o", "json", "--accept", "accepted.yaml", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-accepted-github", args: []string{"diff", "-o", "github", "--accept", "accepted.yaml", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-accepted-sarif-json", args: []string{"diff", "-o", "sarif", "--accept", "accepted.yaml", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-accept", args: []string{"diff", "-o", "accept", "--accept", "accepted.yaml", "project/pizza.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-stale", args: []string{"diff", "--accept", "accepted.yaml", "new.yaml", "new.yaml"}, code: exitOK},
		{name: "diff-fail-on-stale", args: []string{"diff", "--fail-on-stale", "--accept", "accepted.yaml", "new.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-fail-on-stale-github", args: []string{"diff", "-o", "github", "--fail-on-stale", "--accept", "accepted.yaml", "new.yaml", "new.yaml"}, code: exitFindings},
		{name: "diff-invalid", args: []string{"diff", "project/pizza.yaml", "bad.yaml"}, code: exitError},
		{name: "diff-no-storage-version", args: []string{"diff", "project/pizza.yaml", "-"}, stdin: strings.ReplaceAll(content(t, "project/pizza.yaml"), "storage: true", "storage: false"), code: exitError},
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
		{name: "usage-stdin-objects-twice", args: []string{"diff", "--objects", "-", "-", "new.yaml"}, code: exitError},
		{name: "usage-stdin-twice", args: []string{"diff", "-", "-"}, code: exitError},
		{name: "usage-stdin-objects", args: []string{"validate", "--crd", "project", "-", "-"}, code: exitError},
		{name: "usage-stdin-crds", args: []string{"validate", "--crd", "-", "--crd", "-", "objects.yaml"}, code: exitError},
		{name: "help-validate", args: []string{"help", "validate"}, code: exitOK},
		{name: "usage-stdin-both", args: []string{"validate", "--crd", "-", "-"}, code: exitError},
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
				expect.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			if diff := cmp.Diff(content(t, golden), got); diff != "" {
				t.Errorf("(-want +got), -update writes it anew:\n%s", diff)
			}
		})
	}
}

// The errors are in the order of the file.
// The server reports the errors of fields in an order that changes from run to run.
func TestValidate_FileOrder(t *testing.T) {
	crd := strings.Replace(content(t, "testdata/project/deep/others.yml"), "{type: object}",
		"{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}, d: {type: string}, e: {type: string}}}", 1)
	object := "apiVersion: restaurant.example.com/v1\nkind: Oven\nmetadata: {name: o}\ne: 1\nd: 1\nc: 1\nb: 1\na: 1\n"
	file := filepath.Join(t.TempDir(), "crd.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(crd), 0o600))
	for range 10 {
		_, stdout, stderr := run(t, object, "validate", "-o", "json", "--crd", file, "-")
		var answer struct {
			Objects []struct {
				Message string
				Causes  []struct {
					Field string
					Line  int
				}
			}
		}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil || len(answer.Objects) != 1 {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		got := ""
		for _, c := range answer.Objects[0].Causes {
			got += fmt.Sprintf("%s%d ", c.Field, c.Line)
		}
		if want := "e4 d5 c6 b7 a8 "; got != want {
			t.Fatalf("the causes are %s, want %s", got, want)
		}
		if message := answer.Objects[0].Message; strings.Index(message, "e: ") > strings.Index(message, "a: Invalid") {
			t.Fatalf("the message is in another order: %s", message)
		}
	}
}

// Each subcommand has help.
func TestRun_Help(t *testing.T) {
	for _, name := range []string{"lint", "convert", "validate", "diff", "rehearse"} {
		if code, stdout, stderr := run(t, "", name, "--help"); code != exitOK || !strings.Contains(stdout, "crdcheck "+name) || stderr != "" {
			t.Errorf("%s: %d %s%s", name, code, stdout, stderr)
		}
	}
}

// A path may have a comma, and a directory may be a link.
func TestRun_CommaAndLink(t *testing.T) {
	project, err := filepath.Abs("testdata/project")
	expect.NoError(t, err)
	t.Chdir(t.TempDir())
	expect.NoError(t, os.Symlink(project, "a,b"))
	code, stdout, stderr := run(t, oven("a"), "validate", "--crd", "a,b", "-")
	if code != exitOK || stdout != "oven.restaurant.example.com/a valid\n1 valid, 0 invalid, 0 passed over\n" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}

func TestRun_Version(t *testing.T) {
	if code, stdout, _ := run(t, "", "--version"); code != exitOK || !strings.HasPrefix(stdout, "crdcheck version ") {
		t.Errorf("%d %s", code, stdout)
	}
}

// full is a writer like /dev/full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Output that cannot be written is an error.
func TestRun_FailedWrite(t *testing.T) {
	for _, args := range [][]string{
		{"validate", "--crd", "testdata/project", "-"}, {"validate", "-o", "json", "--crd", "testdata/project", "-"},
		{"lint", "testdata/project"}, {"diff", "testdata/project", "testdata/project"}, {"help"},
	} {
		var errOut bytes.Buffer
		code := execute(t.Context(), args, strings.NewReader(oven("a")), full{}, &errOut)
		if want := "error: no space left on device\n"; code != exitError || !strings.HasSuffix(errOut.String(), want) || strings.Count(errOut.String(), want) != 1 {
			t.Errorf("%v: %d %s", args, code, errOut.String())
		}
	}
}

// stuck is a reader like a terminal: it waits, whatever happens to the context.
type stuck struct{ reads func() }

func (s stuck) Read([]byte) (int, error) {
	s.reads()
	select {}
}

// An interrupt ends the command while it reads.
func TestRun_InterruptWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut bytes.Buffer
	if code := execute(ctx, []string{"validate", "--crd", "testdata/project", "-"}, stuck{cancel}, &out, &errOut); code != exitError || errOut.String() != "error: interrupted\n" {
		t.Errorf("%d %s", code, errOut.String())
	}
}

// An interrupt ends the command.
func TestRun_Interrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	if code := execute(ctx, []string{"lint", "testdata"}, strings.NewReader(""), &out, &errOut); code != exitError || errOut.String() != "error: interrupted\n" {
		t.Errorf("%d %s", code, errOut.String())
	}
}

// On a terminal, a line says how far a command is that takes long; it makes way for others.
func TestProgress(t *testing.T) {
	var out, terminal bytes.Buffer
	clock := time.Now()
	p := &progress{out: &terminal, width: func() int { return 20 }, now: func() time.Time { return clock }, next: clock.Add(patience)}
	c := &command{out: bufio.NewWriter(&out), errOut: &terminal, progress: p}
	p.show("soon")
	p.clear()
	clock = clock.Add(patience)
	names := []string{"first", "at once", "with a name that is wider than the terminal"}
	c.each(t.Context(), "lint", len(names), func(i int) string { return names[i] }, func(i int) error {
		if clock = clock.Add(pace / 2); i == 0 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	const clear = "\r\x1b[K"
	want := clear + "lint 1/3 first" + clear + "error: unexpected EOF\n" + clear + "lint 3/3 with a nam" + clear
	if diff := cmp.Diff(want, terminal.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "file")} {
		file, err := os.Create(name)
		expect.NoError(t, err)
		defer file.Close()
		if newProgress(file).out != nil {
			t.Errorf("it shows progress on %s", name)
		}
	}
}

// A wrong path must not pass for definitions without findings.
func TestRun_NothingToCheck(t *testing.T) {
	none := t.TempDir()
	for _, args := range [][]string{
		{"lint", none}, {"convert", none}, {"diff", none, "testdata/new.yaml"}, {"diff", "testdata/new.yaml", none},
		{"validate", "--crd", none, "testdata/objects.yaml"}, {"validate", "--crd", "testdata/project", none},
	} {
		if code, stdout, stderr := run(t, "", args...); code != exitError || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("crdcheck %v: %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdkit/crdkit/test/expect"
)

// A rule that allows more cannot be told from one that allows less: it counts unless the user
// says otherwise.
func TestDiff_UnprovenChangesCountUnlessAllowed(t *testing.T) {
	text := content(t, "testdata/project/deep/others.yml")
	old := strings.Replace(text, "{type: object}", "{type: object, properties: {code: {type: integer, x-kubernetes-validations: [{rule: self < 5}]}}}", 1)
	if old == text {
		t.Fatal("the definition has no properties")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"old.yaml": old, "new.yaml": strings.Replace(old, "self < 5", "self - 1 < 5", 1)} {
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"diff", "old.yaml", "new.yaml"}, exitFindings},
		{[]string{"diff", "--allow-unproven", "old.yaml", "new.yaml"}, exitOK},
	} {
		code, stdout, stderr := run(t, "", test.args...)
		if code != test.code || !strings.Contains(stdout, "0 breaking changes, 1 unproven") {
			t.Errorf("%q: the exit code is %d, want %d\n%s%s", test.args, code, test.code, stdout, stderr)
		}
	}
}

func TestDiff_ObjectsProveChanges(t *testing.T) {
	text := content(t, "testdata/project/deep/others.yml")
	old := strings.Replace(text, "{type: object}", `{type: object, required: [a], x-kubernetes-validations: [{rule: 'int(self.a) % 9973 == 77'}], properties: {a: {type: string}, size: {type: integer}}}`, 1)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"old.yaml": old, "new.yaml": strings.Replace(old, "integer", "integer, maximum: 3", 1),
		"ovens.yaml": "{apiVersion: restaurant.example.com/v1, kind: Oven, metadata: {name: o}, a: \"77\", size: 7}",
	} {
		expect.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	code, stdout, stderr := run(t, "", "diff", "--objects", "ovens.yaml", "old.yaml", "new.yaml")
	if code != exitFindings || !strings.Contains(stdout, `"size":7`) {
		t.Errorf("the exit code is %d, want %d and a proof with the size 7\n%s%s", code, exitFindings, stdout, stderr)
	}
}

// A long proof is printed whole as JSON only.
func TestDiff_LongProofs(t *testing.T) {
	text := content(t, "testdata/project/deep/others.yml")
	old := strings.Replace(text, "{type: object}", "{type: object, properties: {a: {type: string}}}", 1)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"old.yaml": old, "new.yaml": strings.Replace(old, "{type: string}", "{type: string, maxLength: 9000}", 1)} {
		expect.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	long := strings.Repeat("a", 9001)
	for output, whole := range map[string]bool{"text": false, "github": false, "json": true} {
		code, stdout, stderr := run(t, "", "diff", "-o", output, "old.yaml", "new.yaml")
		if code != exitFindings || strings.Contains(stdout, long) != whole || !whole && !strings.Contains(stdout, "aaa… (") {
			t.Errorf("%s: the exit code is %d, and there are %d bytes\n%s", output, code, len(stdout), stderr)
		}
	}
}

// A search that takes too long is not a finding, nor may it pass for one that found nothing.
func TestDiff_TimeoutHasItsOwnExitCode(t *testing.T) {
	t.Chdir("testdata")
	for _, args := range [][]string{
		{"diff", "--timeout", "1ns", "project/pizza.yaml", "new.yaml"},
		{"diff", "--timeout", "1ns", "--allow-unproven", "project/pizza.yaml", "new.yaml"},
		{"diff", "--timeout", "1ns", "-o", "json", "project/pizza.yaml", "project/pizza.yaml"},
	} {
		code, stdout, stderr := run(t, "", args...)
		if code != exitIncomplete || !strings.Contains(stderr, "the timeout of 1ns is over") || strings.Contains(stdout, "compared") {
			t.Errorf("%q: the exit code is %d, want %d\n%s%s", args, code, exitIncomplete, stdout, stderr)
		}
	}
	if code, stdout, stderr := run(t, "", "diff", "--timeout", "10m", "project/pizza.yaml", "new.yaml"); code != exitFindings {
		t.Errorf("the exit code is %d, want %d\n%s%s", code, exitFindings, stdout, stderr)
	}
}

// The changes of which the search was completed are printed, and the others are not called unproven.
func TestDiff_TimeoutKeepsWhatIsProven(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var out, errOut bytes.Buffer
	c := &command{out: bufio.NewWriter(&out), errOut: &errOut, progress: newProgress(&errOut)}
	old, now := c.parse(ctx, []string{"testdata/project/pizza.yaml"}), c.parse(ctx, []string{"testdata/new.yaml"})
	cancel(overtime{time.Second})
	changes := c.compare(ctx, old, now, nil)
	if len(changes) != 0 || !c.incomplete {
		t.Errorf("%d changes, incomplete: %t, want none of a comparison that did not begin", len(changes), c.incomplete)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	c = &command{out: bufio.NewWriter(&out), errOut: &errOut}
	c.progress = &progress{out: writer(func(p []byte) {
		if strings.Contains(string(p), "spec.size") {
			cancel(overtime{time.Second})
		}
	}), width: func() int { return 0 }, now: func() func() time.Time {
		now := time.Now()
		return func() time.Time { now = now.Add(time.Second); return now }
	}()}
	changes = c.compare(ctx, old, now, nil)
	paths := ""
	for _, change := range changes {
		paths += " " + change.Path
		if change.Unproven {
			paths += " (unproven)"
		}
	}
	if want := " spec.names.singular spec (unproven) spec.crust.thick"; paths != want || !c.incomplete {
		t.Errorf("the changes are%s, incomplete: %t, want%s", paths, c.incomplete, want)
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// A terminal shows which change is looked at.
func TestDiff_ProgressNamesTheChange(t *testing.T) {
	var out, terminal bytes.Buffer
	c := &command{out: bufio.NewWriter(&out), errOut: &terminal}
	now := time.Now()
	c.progress = &progress{out: &terminal, width: func() int { return 0 }, now: func() time.Time { now = now.Add(time.Second); return now }}
	old, new := c.parse(t.Context(), []string{"testdata/project/pizza.yaml"}), c.parse(t.Context(), []string{"testdata/new.yaml"})
	c.compare(t.Context(), old, new, nil)
	if want := "diff 1/1 Pizza.restaurant.example.com v1 spec.size"; !strings.Contains(terminal.String(), want) {
		t.Errorf("the terminal shows %q, want %q", terminal.String(), want)
	}
}

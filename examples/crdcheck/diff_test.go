package crdcheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A pattern that allows more cannot be told from one that allows less: it counts unless the user
// says otherwise.
func TestDiff_UnprovenChangesCountUnlessAllowed(t *testing.T) {
	text := content(t, "testdata/project/deep/others.yml")
	old := strings.Replace(text, "{type: object}", "{type: object, properties: {code: {type: string, pattern: '^a$'}}}", 1)
	if old == text {
		t.Fatal("the definition has no properties")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"old.yaml": old, "new.yaml": strings.Replace(old, "^a$", "^a+$", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
	const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	text := content(t, "testdata/project/deep/others.yml")
	old := strings.Replace(text, "{type: object}", `{type: object, required: [a], x-kubernetes-validations: [{rule: "self.a.endsWith('`+digest+`')"}], properties: {a: {type: string}, size: {type: integer}}}`, 1)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"old.yaml": old, "new.yaml": strings.Replace(old, "integer", "integer, maximum: 3", 1),
		"ovens.yaml": "{apiVersion: restaurant.example.com/v1, kind: Oven, metadata: {name: o}, a: \"" + digest + "\", size: 7}",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := run(t, "", "diff", "--objects", "ovens.yaml", "old.yaml", "new.yaml")
	if code != exitFindings || !strings.Contains(stdout, `"size":7`) {
		t.Errorf("the exit code is %d, want %d and a proof with the size 7\n%s%s", code, exitFindings, stdout, stderr)
	}
}

package crdcheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A pattern that allows more cannot be told from one that allows less: it counts only if
// the user says so.
func TestUnprovenChangesCountOnlyIfAsked(t *testing.T) {
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
		{[]string{"diff", "old.yaml", "new.yaml"}, exitOK},
		{[]string{"diff", "--unproven", "old.yaml", "new.yaml"}, exitFindings},
	} {
		code, stdout, stderr := run(t, "", test.args...)
		if code != test.code || !strings.Contains(stdout, "0 breaking changes, 1 unproven") {
			t.Errorf("%q: the exit code is %d, want %d\n%s%s", test.args, code, test.code, stdout, stderr)
		}
	}
}
